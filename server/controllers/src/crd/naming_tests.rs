//! Tests of accepted names and reported conditions.

use super::*;
use portico_registry::Names;

fn names(plural: &str, kind: &str, short: &[&str]) -> Names {
    Names {
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: short.iter().map(|&name| name.to_owned()).collect(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        categories: Vec::new(),
    }
}

fn asking(names: Names) -> Definition {
    Definition { names, ..Definition::default() }
}

/// Returns the definition after a decision, as the next decision sees it.
fn after(definition: &Definition, named: &Named) -> Definition {
    let (accepted, conditions) = (named.accepted.clone(), named.conditions.to_vec());
    Definition { accepted, conditions, ..definition.clone() }
}

fn reported(named: &Named) -> [String; 2] {
    named.conditions.clone().map(|c| format!("{} {}: {}", c.status, c.reason, c.message))
}

fn in_use(all: &[&Names]) -> InUse {
    let mut in_use = InUse::default();
    all.iter().for_each(|names| in_use.take(names));
    in_use
}

#[test]
fn the_first_to_ask_gets_everything_and_begins_to_be_installed() {
    let bolts = asking(names("bolts", "Bolt", &["bt"]));
    let named = decide(&bolts, &InUse::default()).unwrap();
    assert_eq!(named.accepted, bolts.names);
    let installing = "False Installing: the initial names have been accepted";
    assert_eq!(reported(&named), ["True NoConflicts: no conflicts found", installing]);
    assert_eq!(decide(&after(&bolts, &named), &in_use(&[&named.accepted])), None);
}

#[test]
fn each_name_is_refused_by_its_own_pool_and_the_last_refusal_is_reported() {
    let bolts = names("bolts", "Bolt", &["bt"]);
    let rows = [
        (names("bolts", "Nut", &[]), "PluralConflict: \"bolts\" is already in use"),
        (names("bt", "Nut", &[]), "PluralConflict: \"bt\" is already in use"),
        (
            Names { singular: "bolts".into(), ..names("nuts", "Nut", &[]) },
            "SingularConflict: \"bolts\" is already in use",
        ),
        (names("nuts", "Nut", &["zz", "bt"]), "ShortNamesConflict: \"bt\" is already in use"),
        (
            names("nuts", "Nut", &["bolt", "bt", "bt"]),
            "ShortNamesConflict: [\"bolt\" is already in use, \"bt\" is already in use]",
        ),
        (
            Names { singular: "nut".into(), list_kind: "NutList".into(), ..names("nuts", "Bolt", &["bt"]) },
            "KindConflict: \"Bolt\" is already in use",
        ),
        (names("nuts", "Bolt", &[]), "ListKindConflict: \"BoltList\" is already in use"),
        (
            Names { list_kind: "Bolt".into(), ..names("nuts", "Nut", &[]) },
            "ListKindConflict: \"Bolt\" is already in use",
        ),
    ];
    for (wanted, why) in rows {
        let named = decide(&asking(wanted), &in_use(&[&bolts])).unwrap();
        let not_accepted = "False NotAccepted: not all names are accepted";
        assert_eq!(reported(&named), [format!("False {why}"), not_accepted.to_owned()]);
    }
}

#[test]
fn a_kind_may_be_called_as_a_resource_of_another() {
    let lower = Names { kind: "bolts".into(), ..names("nuts", "Nut", &[]) };
    let named = decide(&asking(lower), &in_use(&[&names("bolts", "Bolt", &[])])).unwrap();
    assert_eq!(named.conditions[0].status, "True");
}

#[test]
fn who_is_refused_one_name_has_the_others_and_its_categories() {
    let mut nuts = names("nuts", "Nut", &["bt", "zz"]);
    nuts.categories = vec!["all".into()];
    let named = decide(&asking(nuts.clone()), &in_use(&[&names("bolts", "Bolt", &["bt"])])).unwrap();
    assert_eq!(named.accepted, Names { short_names: Vec::new(), ..nuts });
}

#[test]
fn what_is_established_keeps_its_names_and_stays_established() {
    let had = names("nuts", "Nut", &["zz"]);
    let established = Condition::new(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names");
    let nuts = Definition {
        accepted: had.clone(),
        conditions: vec![established.clone()],
        ..asking(names("nuts", "Nut", &["zz", "bt"]))
    };
    let others = names("bolts", "Bolt", &["bt"]);
    let named = decide(&nuts, &in_use(&[&had, &others])).unwrap();
    assert_eq!((named.accepted.clone(), &named.conditions[1]), (had, &established));
    assert_eq!(named.conditions[0].reason, "ShortNamesConflict");
    // The conflict is reported once.
    assert_eq!(decide(&after(&nuts, &named), &in_use(&[&nuts.accepted, &others])), None);
    // After the name is released:
    let free = decide(&after(&nuts, &named), &in_use(&[&nuts.accepted])).unwrap();
    assert_eq!(free.accepted, nuts.names);
    assert_eq!((free.conditions[0].status.as_str(), &free.conditions[1]), ("True", &established));
}

#[test]
fn going_back_to_accepted_names_changes_no_condition() {
    let had = names("nuts", "Nut", &["zz"]);
    let refused = Condition::new(NAMES_ACCEPTED, "False", "ShortNamesConflict", "\"bt\" is already in use");
    let nuts = Definition { accepted: had.clone(), conditions: vec![refused], ..asking(had.clone()) };
    assert_eq!(decide(&nuts, &in_use(&[&had])), None);
}

#[test]
fn a_name_is_free_again_when_the_last_who_had_it_lets_it_go() {
    let (one, other) = (names("bolts", "Bolt", &["bt"]), names("nuts", "Nut", &["bt"]));
    let mut pool = in_use(&[&one, &other]);
    pool.release(&one);
    assert!(pool.frees_any(&one) && !pool.frees_any(&other));
    pool.release(&other);
    assert_eq!(pool, InUse::default());
}
