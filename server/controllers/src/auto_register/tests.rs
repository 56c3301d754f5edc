//! Tests of the controller that need no registry.

use portico_machinery::resolve::{FactSource, ServiceKey};
use portico_machinery::{GroupVersion, Object};

use super::*;

fn desired(group: &str, mode: ManagedMode) -> DesiredApiService {
    DesiredApiService {
        group_version: GroupVersion::new(group, "v1"),
        group_priority_minimum: 1000,
        version_priority: 100,
        mode,
    }
}

fn controller(built_in: &[&str]) -> (Informers, AutoRegister) {
    let informers = Informers::default();
    let built_in: Vec<_> = built_in.iter().map(|g| desired(g, ManagedMode::OnStart)).collect();
    let controller = AutoRegister::new(&informers, built_in, &MetricsRegistry::new());
    (informers, controller)
}

fn put(informers: &Informers, object: &Object) {
    informers.change(|facts, touched| {
        facts.put(FactSource::ApiServices, object, touched);
        0
    });
}

fn action(controller: &AutoRegister, name: &str) -> SyncAction {
    controller.inner.decide(&name.into()).0
}

fn available(mut object: Object) -> Object {
    let conditions = br#"{"conditions":[{"type":"Available","status":"True"}]}"#;
    object.put(&["status"], Object::from_json(conditions).unwrap().into_node());
    object
}

#[test]
fn a_written_api_service_matches_the_desired_one() {
    for group in ["", "g.io"] {
        let desired = desired(group, ManagedMode::Always);
        let name = desired.group_version.api_service_name();
        let (informers, controller) = controller(&[]);
        controller.add_desired(desired.clone());
        assert_eq!(action(&controller, &name), SyncAction::Create);
        put(&informers, &write::object(&name, &desired));
        assert_eq!(action(&controller, &name), SyncAction::Skip, "{group:?}");
        controller.remove_desired(&name);
        assert_eq!(action(&controller, &name), SyncAction::Delete);
    }
}

#[test]
fn edits_of_a_managed_object_are_reverted_and_an_unlabeled_one_is_not_changed() {
    let (informers, controller) = controller(&[]);
    controller.add_desired(desired("g", ManagedMode::Always));
    let mut edited = write::object("v1.g", &desired("g", ManagedMode::Always));
    edited.set(&["spec", "versionPriority"], 7);
    put(&informers, &edited);
    assert_eq!(action(&controller, "v1.g"), SyncAction::Update);
    edited.remove(&["metadata", "labels"]);
    put(&informers, &edited);
    assert_eq!(action(&controller, "v1.g"), SyncAction::Skip);
}

#[test]
fn only_objects_of_the_first_event_count_as_present_at_start() {
    let (informers, controller) = controller(&[]);
    let object = |group: &str| write::object(&format!("v1.{group}"), &desired(group, ManagedMode::OnStart));
    put(&informers, &object("old"));
    put(&informers, &object("new"));
    assert_eq!(action(&controller, "v1.old"), SyncAction::Delete);
    assert_eq!(action(&controller, "v1.new"), SyncAction::Skip);
}

#[test]
fn the_registration_group_gets_no_api_service() {
    let (_, controller) = controller(&["apiregistration.k8s.io"]);
    assert_eq!(action(&controller, "v1.apiregistration.k8s.io"), SyncAction::Skip);
    assert!(controller.completion().check().is_ok());
}

#[test]
fn completion_waits_for_each_built_in_once_and_stays_healthy() {
    let (informers, controller) = controller(&["apps", "batch"]);
    let completion = controller.completion();
    let object = |group: &str| write::object(&format!("v1.{group}"), &desired(group, ManagedMode::OnStart));
    assert_eq!(completion.check().unwrap_err(), r#"missing APIService: ["v1.apps", "v1.batch"]"#);
    put(&informers, &available(object("batch")));
    put(&informers, &object("apps"));
    assert_eq!(completion.check().unwrap_err(), r#"missing APIService: ["v1.apps"]"#);
    informers.change(|facts, touched| {
        facts.remove(FactSource::ApiServices, ServiceKey::new("", "v1.batch"), touched);
        0
    });
    put(&informers, &available(object("apps")));
    assert!(completion.check().is_ok() && completion.completed().is_signaled());
    put(&informers, &object("apps"));
    assert!(completion.check().is_ok());
}
