//! Tests of the controller that need no registry.

use portico_machinery::resolve::{ServiceKey, Watched};
use portico_machinery::{GroupVersion, Object};

use super::*;

fn desired(group: &str, mode: Mode) -> Desired {
    Desired {
        group_version: GroupVersion::new(group, "v1"),
        group_priority_minimum: 1000,
        version_priority: 100,
        mode,
    }
}

fn controller(built_in: &[&str]) -> (Informers, AutoRegister) {
    let informers = Informers::default();
    let built_in: Vec<_> = built_in.iter().map(|g| desired(g, Mode::OnStart)).collect();
    let controller = AutoRegister::new(&informers, built_in, &MetricsRegistry::new());
    (informers, controller)
}

fn put(informers: &Informers, object: &Object) {
    informers.change(|facts, touched| {
        facts.put(Watched::ApiServices, object, touched);
        0
    });
}

fn action(controller: &AutoRegister, name: &str) -> Action {
    controller.inner.decide(&name.into()).0
}

fn available(mut object: Object) -> Object {
    let conditions = br#"{"conditions":[{"type":"Available","status":"True"}]}"#;
    object.put(&["status"], Object::from_json(conditions).unwrap().into_node());
    object
}

#[test]
fn what_it_writes_reads_back_as_desired() {
    for group in ["", "g.io"] {
        let desired = desired(group, Mode::Always);
        let name = desired.group_version.api_service_name();
        let (informers, controller) = controller(&[]);
        controller.desire(desired.clone());
        assert_eq!(action(&controller, &name), Action::Create);
        put(&informers, &write::object(&name, &desired));
        assert_eq!(action(&controller, &name), Action::Nothing, "{group:?}");
        controller.undesire(&name);
        assert_eq!(action(&controller, &name), Action::Delete);
    }
}

#[test]
fn edits_of_a_managed_object_are_reverted_and_an_unlabelled_one_is_left_alone() {
    let (informers, controller) = controller(&[]);
    controller.desire(desired("g", Mode::Always));
    let mut edited = write::object("v1.g", &desired("g", Mode::Always));
    edited.set(&["spec", "versionPriority"], 7);
    put(&informers, &edited);
    assert_eq!(action(&controller, "v1.g"), Action::Update);
    edited.remove(&["metadata", "labels"]);
    put(&informers, &edited);
    assert_eq!(action(&controller, "v1.g"), Action::Nothing);
}

#[test]
fn what_was_there_at_the_start_is_remembered_from_the_first_event_only() {
    let (informers, controller) = controller(&[]);
    let object = |group: &str| write::object(&format!("v1.{group}"), &desired(group, Mode::OnStart));
    put(&informers, &object("old"));
    put(&informers, &object("new"));
    assert_eq!(action(&controller, "v1.old"), Action::Delete);
    assert_eq!(action(&controller, "v1.new"), Action::Nothing);
}

#[test]
fn the_registration_group_gets_no_api_service() {
    let (_, controller) = controller(&["apiregistration.k8s.io"]);
    assert_eq!(action(&controller, "v1.apiregistration.k8s.io"), Action::Nothing);
    assert!(controller.completion().check().is_ok());
}

#[test]
fn completion_waits_for_each_built_in_once_and_stays_green() {
    let (informers, controller) = controller(&["apps", "batch"]);
    let completion = controller.completion();
    let object = |group: &str| write::object(&format!("v1.{group}"), &desired(group, Mode::OnStart));
    assert_eq!(completion.check().unwrap_err(), r#"missing APIService: ["v1.apps", "v1.batch"]"#);
    put(&informers, &available(object("batch")));
    put(&informers, &object("apps"));
    assert_eq!(completion.check().unwrap_err(), r#"missing APIService: ["v1.apps"]"#);
    informers.change(|facts, touched| {
        facts.remove(Watched::ApiServices, ServiceKey::new("", "v1.batch"), touched);
        0
    });
    put(&informers, &available(object("apps")));
    assert!(completion.check().is_ok() && completion.completed().is_signaled());
    put(&informers, &object("apps"));
    assert!(completion.check().is_ok());
}
