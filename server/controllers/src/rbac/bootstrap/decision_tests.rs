//! Tests of completing existing objects without removing anything.

use super::*;
use crate::rbac::bootstrap::policy_objects;

fn entry(name: &str) -> PolicyObject {
    policy_objects().unwrap().into_iter().find(|e| e.key.to_string() == name).unwrap()
}

fn complete_object_of(name: &str) -> Object {
    let step = step_of(&entry(name), None).unwrap();
    assert_eq!(step.verb, PolicyStepVerb::Create);
    step.object
}

#[test]
fn a_complete_object_needs_no_step() {
    for entry in policy_objects().unwrap() {
        let object = step_of(&entry, None).unwrap().object;
        assert_eq!(step_of(&entry, Some(&object)), None, "{}", entry.key);
    }
}

#[test]
fn missing_rules_and_labels_are_added_and_others_stay() {
    let name = "clusterroles/system:basic-user";
    let mut object = complete_object_of(name);
    object.set(&["metadata", "labels", "mine"], "yes");
    object.set(&["metadata", "labels", "kubernetes.io/bootstrapping"], "other");
    let own = Rule { verbs: vec!["get".into()], non_resource_urls: vec!["/x".into()], ..Rule::default() };
    object.set(&["rules"], vec![own.clone()]);
    let step = step_of(&entry(name), Some(&object)).unwrap();
    assert_eq!(step.verb, PolicyStepVerb::Update);
    let labels = step.object.at(&["metadata", "labels"]);
    assert_eq!(
        (labels.entry_str("mine"), labels.entry_str("kubernetes.io/bootstrapping")),
        (Some("yes"), Some("other"))
    );
    let rules = Rule::read_all(&step.object.at(&["rules"]));
    assert_eq!((rules.len(), &rules[0]), (4, &own));
}

#[test]
fn a_protected_object_is_not_changed() {
    let name = "clusterroles/cluster-admin";
    let mut object = complete_object_of(name);
    object.remove(&["rules"]);
    assert!(step_of(&entry(name), Some(&object)).is_some());
    object.set(&["metadata", "annotations", AUTO_UPDATE], "false");
    assert_eq!(step_of(&entry(name), Some(&object)), None);
}

#[test]
fn a_binding_gets_its_missing_subjects_and_role() {
    let name = "clusterrolebindings/system:public-info-viewer";
    let mut object = complete_object_of(name);
    object.set(&["metadata", "uid"], "u");
    object.remove(&["subjects"]);
    let step = step_of(&entry(name), Some(&object)).unwrap();
    assert_eq!((&step.verb, step.object.at(&["subjects"]).len()), (&PolicyStepVerb::Update, 2));
    object.set(&["roleRef", "name"], "view");
    let step = step_of(&entry(name), Some(&object)).unwrap();
    assert_eq!(step.verb, PolicyStepVerb::Recreate { uid: "u".into() });
    assert!(step.object.uid().is_empty());
}

#[test]
fn an_aggregated_role_gets_its_missing_selector_in_addition_to_others() {
    let mut object = complete_object_of("clusterroles/admin");
    let other = Object::from_json(br#"{"matchLabels":{"mine":"true"}}"#).unwrap();
    object.set(&["aggregationRule", "clusterRoleSelectors"], vec![other.into_node()]);
    let step = step_of(&entry("clusterroles/admin"), Some(&object)).unwrap();
    assert_eq!(step.object.at(&["aggregationRule", "clusterRoleSelectors"]).len(), 2);
}
