//! Tests with definitions that are created, compete for names, and are deleted.

use portico_machinery::Object;

use super::*;

fn object(plural: &str, short: &str, versions: &[(&str, bool)]) -> Object {
    let versions: Vec<String> =
        versions.iter().map(|(name, served)| format!(r#"{{"name":"{name}","served":{served}}}"#)).collect();
    let json = format!(
        r#"{{"metadata":{{"uid":"{plural}","generation":1}},"spec":{{"group":"g.io","versions":[{}],
            "names":{{"plural":"{plural}","kind":"{plural}","shortNames":["{short}"]}}}}}}"#,
        versions.join(","),
    );
    Object::from_json(json.as_bytes()).unwrap()
}

/// An index, and the revision of the store that feeds it.
#[derive(Default)]
struct Harness {
    index: CrdIndex,
    revision: i64,
}

impl Harness {
    fn put(&mut self, name: &str, object: &Object) -> Effects {
        self.revision += 1;
        self.index.put(&name.into(), Definition::from_object(object), self.revision)
    }

    /// Writes the status once, as the writer does. Returns the effects; `None` if the status is up to date.
    fn write(&mut self, name: &str, object: &mut Object) -> Option<Effects> {
        self.index.advance(self.revision);
        let verdict = self.index.decide(&name.into(), &Definition::from_object(object), self.revision)?;
        verdict.apply(object, jiff::Timestamp::UNIX_EPOCH);
        self.revision += 1;
        Some(self.index.finish_write(&name.into(), Some((Definition::from_object(object), self.revision))))
    }

    fn write_all(&mut self, name: &str, object: &mut Object) {
        while self.write(name, object).is_some() {}
    }
}

fn names(effects: &[DefinitionName]) -> Vec<&str> {
    effects.iter().map(|name| &**name).collect()
}

fn versions(all: &[GroupVersion]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn only_definitions_that_wait_for_a_released_name_are_decided_again() {
    let mut harness = Harness::default();
    let (mut a, mut b, mut c) = (object("a", "x", &[]), object("b", "x", &[]), object("c", "y", &[]));
    assert_eq!(names(&harness.put("a", &a).decide), ["a"]);
    harness.write_all("a", &mut a);
    harness.put("b", &b);
    harness.write_all("b", &mut b);
    harness.put("c", &c);
    harness.write_all("c", &mut c);
    assert_eq!(b.at(&["status", "acceptedNames", "shortNames"]).len(), 0);
    // A change of a label releases no names.
    assert_eq!(harness.put("a", &a), Effects::default());
    assert_eq!(names(&harness.index.remove("a").decide), ["b"]);
    harness.write_all("b", &mut b);
    assert_eq!(b.at(&["status", "acceptedNames", "shortNames"]).len(), 1);
    assert_eq!(harness.index.remove("b"), Effects::default());
    assert_eq!(harness.index.remove("c"), Effects::default());
    assert!(harness.index.groups.is_empty() && harness.index.definitions.is_empty());
}

#[test]
fn a_name_is_released_when_the_status_without_it_is_written() {
    let mut harness = Harness::default();
    let (mut a, mut b) = (object("a", "x", &[]), object("b", "x", &[]));
    harness.put("a", &a);
    harness.write_all("a", &mut a);
    harness.put("b", &b);
    harness.write_all("b", &mut b);
    a.set(&["spec", "names", "shortNames"], ["z"]);
    assert_eq!(names(&harness.put("a", &a).decide), ["a"]);
    assert_eq!(names(&harness.write("a", &mut a).unwrap().decide), ["b"]);
}

#[test]
fn names_are_reserved_until_the_write_fails() {
    let mut harness = Harness::default();
    let (a, b) = (object("a", "x", &[]), object("b", "x", &[]));
    harness.put("a", &a);
    harness.put("b", &b);
    let read = |object: &Object| Definition::from_object(object);
    assert!(harness.index.decide(&"a".into(), &read(&a), 0).is_some());
    let refused = harness.index.decide(&"b".into(), &read(&b), 0).unwrap();
    assert_eq!(refused.conditions[0].reason, "ShortNamesConflict");
    let mut written = b.clone();
    refused.apply(&mut written, jiff::Timestamp::UNIX_EPOCH);
    harness.index.finish_write(&"b".into(), Some((read(&written), 10)));
    let effects = harness.index.finish_write(&"a".into(), None);
    assert_eq!(names(&effects.decide), ["b"]);
    assert_eq!(harness.index.decide(&"b".into(), &read(&written), 0).unwrap().conditions[0].status, "True");
}

#[test]
fn a_write_that_ends_after_a_deletion_does_not_restore_the_definition() {
    let mut harness = Harness::default();
    let a = object("a", "x", &[("v1", true)]);
    harness.put("a", &a);
    harness.index.remove("a");
    assert_eq!(
        harness.index.finish_write(&"a".into(), Some((Definition::from_object(&a), 9))),
        Effects::default()
    );
    assert!(harness.index.get("a").is_none());
    let effects = harness.put("a", &a);
    assert_eq!(versions(&effects.appeared), ["g.io/v1"]);
    let mut anew = a.clone();
    anew.set(&["metadata", "uid"], "other");
    let effects = harness.put("a", &anew);
    assert_eq!(
        (versions(&effects.vanished), versions(&effects.appeared)),
        (vec!["g.io/v1".into()], vec!["g.io/v1".into()])
    );
}

#[test]
fn a_version_is_served_while_any_definition_serves_it() {
    let mut harness = Harness::default();
    let (a, b) = (object("a", "x", &[("v1", true), ("v2", false)]), object("b", "y", &[("v1", true)]));
    assert_eq!(versions(&harness.put("a", &a).appeared), ["g.io/v1"]);
    assert!(harness.put("b", &b).appeared.is_empty());
    let turned = object("a", "x", &[("v1", false), ("v2", true)]);
    let effects = harness.put("a", &turned);
    assert_eq!((versions(&effects.appeared), effects.vanished.len()), (vec!["g.io/v2".to_owned()], 0));
    let effects = harness.index.remove("b");
    assert_eq!(versions(&effects.vanished), ["g.io/v1"]);
    assert_eq!(versions(&harness.index.remove("a").vanished), ["g.io/v2"]);
}

#[test]
fn a_deleted_definition_with_a_finalizer_is_finalized_once_per_change() {
    let mut harness = Harness::default();
    let mut a = object("a", "x", &[]);
    a.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(harness.put("a", &a).finalize.len(), 0);
    a.set(&["metadata", "finalizers"], [portico_registry::definition::FINALIZER]);
    assert_eq!(names(&harness.put("a", &a).finalize), ["a"]);
    assert_eq!(harness.put("a", &a).finalize.len(), 0);
}

#[test]
fn names_are_accepted_once_all_earlier_changes_are_applied() {
    let (mut index, name, a) = (CrdIndex::default(), DefinitionName::from("a"), object("a", "x", &[]));
    let a = Definition::from_object(&a);
    index.put(&name, a.clone(), 5);
    assert_eq!(index.decide(&name, &a, 5), None);
    assert_eq!(index.advance(4), Effects::default());
    assert_eq!(names(&index.advance(5).decide), ["a"]);
    assert!(index.decide(&name, &a, 5).is_some_and(|verdict| verdict.accepted_names.is_some()));
    assert_eq!(index.advance(6), Effects::default());
}

#[test]
fn rivals_request_names_that_a_definition_is_about_to_get() {
    let mut harness = Harness::default();
    let (a, mut settled) = (object("a", "x", &[]), object("settled", "z", &[]));
    harness.put("settled", &settled);
    harness.write_all("settled", &mut settled);
    for (name, short) in [("a", "x"), ("rival", "x"), ("other", "y")] {
        harness.put(name, &object(name, short, &[]));
    }
    let definition = Definition::from_object(&a);
    let verdict = harness.index.decide_status(&definition).unwrap();
    let revision = harness.index.definitions["rival"].revision;
    assert_eq!(harness.index.rivals("a", &definition, &verdict), [(DefinitionName::from("rival"), revision)]);
}
