//! Tests of accepted names and reported conditions.

use super::*;
use portico_registry::DefinitionNames;

fn names(plural: &str, kind: &str, short: &[&str]) -> DefinitionNames {
    DefinitionNames {
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: short.iter().map(|&name| name.to_owned()).collect(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        categories: Vec::new(),
    }
}

fn requesting(names: DefinitionNames) -> Definition {
    Definition { names, ..Definition::default() }
}

/// Returns the definition after a decision, as the next decision sees it.
fn with_decision(definition: &Definition, decision: &NamingDecision) -> Definition {
    let (accepted, conditions) = (decision.accepted.clone(), decision.conditions.to_vec());
    Definition { accepted, conditions, ..definition.clone() }
}

fn condition_summaries(decision: &NamingDecision) -> [String; 2] {
    decision.conditions.clone().map(|c| format!("{} {}: {}", c.status, c.reason, c.message))
}

fn in_use(all: &[&DefinitionNames]) -> NamesInUse {
    let mut in_use = NamesInUse::default();
    all.iter().for_each(|names| in_use.acquire(names));
    in_use
}

#[test]
fn the_first_definition_gets_all_names_and_is_installing() {
    let bolts = requesting(names("bolts", "Bolt", &["bt"]));
    let decision = decide(&bolts, &NamesInUse::default()).unwrap();
    assert_eq!(decision.accepted, bolts.names);
    let installing = "False Installing: the initial names have been accepted";
    assert_eq!(condition_summaries(&decision), ["True NoConflicts: no conflicts found", installing]);
    assert_eq!(decide(&with_decision(&bolts, &decision), &in_use(&[&decision.accepted])), None);
}

#[test]
fn each_name_conflicts_only_within_its_own_pool_and_the_last_conflict_is_reported() {
    let bolts = names("bolts", "Bolt", &["bt"]);
    let rows = [
        (names("bolts", "Nut", &[]), "PluralConflict: \"bolts\" is already in use"),
        (names("bt", "Nut", &[]), "PluralConflict: \"bt\" is already in use"),
        (
            DefinitionNames { singular: "bolts".into(), ..names("nuts", "Nut", &[]) },
            "SingularConflict: \"bolts\" is already in use",
        ),
        (names("nuts", "Nut", &["zz", "bt"]), "ShortNamesConflict: \"bt\" is already in use"),
        (
            names("nuts", "Nut", &["bolt", "bt", "bt"]),
            "ShortNamesConflict: [\"bolt\" is already in use, \"bt\" is already in use]",
        ),
        (
            DefinitionNames {
                singular: "nut".into(),
                list_kind: "NutList".into(),
                ..names("nuts", "Bolt", &["bt"])
            },
            "KindConflict: \"Bolt\" is already in use",
        ),
        (names("nuts", "Bolt", &[]), "ListKindConflict: \"BoltList\" is already in use"),
        (
            DefinitionNames { list_kind: "Bolt".into(), ..names("nuts", "Nut", &[]) },
            "ListKindConflict: \"Bolt\" is already in use",
        ),
    ];
    for (wanted, why) in rows {
        let decision = decide(&requesting(wanted), &in_use(&[&bolts])).unwrap();
        let not_accepted = "False NotAccepted: not all names are accepted";
        assert_eq!(condition_summaries(&decision), [format!("False {why}"), not_accepted.to_owned()]);
    }
}

#[test]
fn a_kind_may_have_the_name_of_another_resource() {
    let lowercase = DefinitionNames { kind: "bolts".into(), ..names("nuts", "Nut", &[]) };
    let decision = decide(&requesting(lowercase), &in_use(&[&names("bolts", "Bolt", &[])])).unwrap();
    assert_eq!(decision.conditions[0].status, "True");
}

#[test]
fn a_definition_with_one_conflict_gets_its_other_names_and_categories() {
    let mut nuts = names("nuts", "Nut", &["bt", "zz"]);
    nuts.categories = vec!["all".into()];
    let decision = decide(&requesting(nuts.clone()), &in_use(&[&names("bolts", "Bolt", &["bt"])])).unwrap();
    assert_eq!(decision.accepted, DefinitionNames { short_names: Vec::new(), ..nuts });
}

#[test]
fn an_established_definition_keeps_its_names_and_stays_established() {
    let old_names = names("nuts", "Nut", &["zz"]);
    let established = Condition::new(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names");
    let nuts = Definition {
        accepted: old_names.clone(),
        conditions: vec![established.clone()],
        ..requesting(names("nuts", "Nut", &["zz", "bt"]))
    };
    let others = names("bolts", "Bolt", &["bt"]);
    let decision = decide(&nuts, &in_use(&[&old_names, &others])).unwrap();
    assert_eq!((decision.accepted.clone(), &decision.conditions[1]), (old_names, &established));
    assert_eq!(decision.conditions[0].reason, "ShortNamesConflict");
    // The conflict is reported once.
    assert_eq!(decide(&with_decision(&nuts, &decision), &in_use(&[&nuts.accepted, &others])), None);
    // After the name is released:
    let free = decide(&with_decision(&nuts, &decision), &in_use(&[&nuts.accepted])).unwrap();
    assert_eq!(free.accepted, nuts.names);
    assert_eq!((free.conditions[0].status.as_str(), &free.conditions[1]), ("True", &established));
}

#[test]
fn going_back_to_accepted_names_changes_no_condition() {
    let old_names = names("nuts", "Nut", &["zz"]);
    let refused = Condition::new(NAMES_ACCEPTED, "False", "ShortNamesConflict", "\"bt\" is already in use");
    let nuts = Definition {
        accepted: old_names.clone(),
        conditions: vec![refused],
        ..requesting(old_names.clone())
    };
    assert_eq!(decide(&nuts, &in_use(&[&old_names])), None);
}

#[test]
fn a_name_is_free_after_the_last_definition_releases_it() {
    let (one, other) = (names("bolts", "Bolt", &["bt"]), names("nuts", "Nut", &["bt"]));
    let mut pool = in_use(&[&one, &other]);
    pool.release(&one);
    assert!(pool.frees_any(&one) && !pool.frees_any(&other));
    pool.release(&other);
    assert_eq!(pool, NamesInUse::default());
}
