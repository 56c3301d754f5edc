//! Custom resources: kinds that definitions add at run time.

use portico_registry::definition::resource;
use portico_store::{Indexed, Txn, Value};

use crate::harness::{Harness, JSON, MERGE, next};

pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const TABS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";

/// Definition of CronTabs with these versions.
pub fn definition(versions: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"crontabs.stable.example.com"}},
        "spec":{{"group":"stable.example.com","scope":"Namespaced",
        "names":{{"plural":"crontabs","singular":"crontab","kind":"CronTab","listKind":"CronTabList"}},"versions":[{versions}]}}}}"#
    )
}

/// Version whose spec has these properties.
pub fn version(name: &str, storage: bool, properties: &str) -> String {
    format!(
        r#"{{"name":"{name}","served":true,"storage":{storage},"subresources":{{"status":{{}}}},
        "schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
        "spec":{{"type":"object","properties":{{{properties}}}}},"status":{{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}}}}"#
    )
}

pub const PROPERTIES: &str = r#""cronSpec":{"type":"string"},"image":{"type":"string","default":"nginx"},"replicas":{"type":"integer"}"#;

/// Harness that serves custom resources, with a definition that has been accepted.
pub async fn open_with_definition(versions: &str) -> Harness {
    let harness = Harness::open().await;
    let kept = harness.registry.serve_custom_resources().await.unwrap();
    harness.tasks().spawn_until_cancelled("definitions", kept);
    let created = harness.post(CRDS, &definition(versions)).await;
    assert_eq!(created.code, 201, "{}", created.text);
    accept(&harness).await;
    harness
}

/// Writes the status that the controllers of definitions would write.
pub async fn accept(harness: &Harness) {
    let status = r#"{"status":{"acceptedNames":{"plural":"crontabs","singular":"crontab","kind":"CronTab","listKind":"CronTabList"},
        "conditions":[{"type":"NamesAccepted","status":"True","reason":"NoConflicts","message":"no conflicts found","lastTransitionTime":"2026-01-01T00:00:00Z"},
        {"type":"Established","status":"True","reason":"InitialNamesAccepted","message":"the initial names have been accepted","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#;
    let accepted = harness.patch(&format!("{CRDS}/crontabs.stable.example.com/status"), MERGE, status).await;
    assert_eq!(accepted.code, 200, "{}", accepted.text);
}

pub fn tab(version: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"stable.example.com/{version}","kind":"CronTab","metadata":{{"name":"t"}},"spec":{{{spec}}}}}"#
    )
}

#[tokio::test]
async fn a_definition_serves_its_objects_through_all_verbs() {
    let harness = open_with_definition(&version("v1", true, PROPERTIES)).await;
    let created = harness.post(TABS, &tab("v1", r#""cronSpec":"* *","odd":1"#)).await;
    assert_eq!((created.code, created.at("spec.image").as_str()), (201, "nginx"), "{}", created.text);
    assert_eq!(created.warnings, [r#"unknown field "spec.odd""#]);
    assert_eq!((created.at("metadata.generation"), created.at("spec").contains("odd")), ("1".into(), false));
    let patched = harness.patch(&format!("{TABS}/t"), MERGE, r#"{"spec":{"replicas":2}}"#).await;
    assert_eq!((patched.code, patched.at("metadata.generation").as_str()), (200, "2"), "{}", patched.text);
    let status = harness
        .patch(&format!("{TABS}/t/status"), MERGE, r#"{"status":{"x":1},"spec":{"replicas":9}}"#)
        .await;
    assert_eq!(
        (status.code, status.at("spec.replicas").as_str(), status.at("status.x").as_str()),
        (200, "2", "1")
    );
    assert_eq!(status.at("metadata.generation"), "2");
    let listed = harness.get(TABS).await;
    assert_eq!((listed.names(), listed.at("kind").as_str()), (vec!["t".to_owned()], "CronTabList"));
    assert_eq!(listed.at("items.0.kind"), "CronTab");
    assert_eq!(harness.delete(&format!("{TABS}/t")).await.code, 200);
    assert_eq!(harness.get(&format!("{TABS}/t")).await.code, 404);
}

#[tokio::test]
async fn every_served_version_shows_all_objects() {
    let two = format!("{},{}", version("v1", true, PROPERTIES), version("v2", false, PROPERTIES));
    let harness = open_with_definition(&two).await;
    let v2 = TABS.replace("/v1/", "/v2/");
    let mut watched = harness.watch(&format!("{TABS}?watch=true"), "application/json").await;
    let created = harness.post(&v2, &tab("v2", r#""cronSpec":"x""#)).await;
    assert_eq!(
        (created.code, created.at("apiVersion").as_str()),
        (201, "stable.example.com/v2"),
        "{}",
        created.text
    );
    let event = next(&mut watched).await;
    assert!(String::from_utf8_lossy(&event.line()).contains(r#""apiVersion":"stable.example.com/v1""#));
    let got = harness.get(&format!("{TABS}/t")).await;
    assert_eq!(
        (got.at("apiVersion").as_str(), got.at("spec.cronSpec").as_str()),
        ("stable.example.com/v1", "x")
    );
    assert_eq!(harness.get(&TABS.replace("/v1/", "/v3/")).await.text, "404 page not found\n");
}

#[tokio::test]
async fn a_changed_schema_applies_immediately_and_ends_watches() {
    let harness = open_with_definition(&version("v1", true, PROPERTIES)).await;
    harness.post(TABS, &tab("v1", r#""cronSpec":"x""#)).await;
    let mut watched = harness.watch(&format!("{TABS}?watch=true"), "application/json").await;
    next(&mut watched).await;
    let current = harness.get(&format!("{CRDS}/crontabs.stable.example.com")).await;
    let narrower = r#""image":{"type":"string"},"size":{"type":"integer","default":3}"#;
    let changed = format!(
        r#"{{"metadata":{{"resourceVersion":"{}"}},"spec":{{"versions":[{}]}}}}"#,
        current.at("metadata.resourceVersion"),
        version("v1", true, narrower)
    );
    let changed = harness.patch(&format!("{CRDS}/crontabs.stable.example.com"), MERGE, &changed).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    let ended =
        tokio::time::timeout(std::time::Duration::from_secs(10), futures::StreamExt::next(&mut watched))
            .await;
    assert!(ended.unwrap().is_none());
    let got = harness.get(&format!("{TABS}/t")).await;
    assert_eq!(
        (got.at("spec.size").as_str(), got.at("spec").contains("cronSpec")),
        ("3", false),
        "{}",
        got.text
    );
}

#[tokio::test]
async fn a_check_reports_effects_of_a_definition_on_clients_and_stored_objects() {
    use portico_registry::{Context, FindingKind};
    let harness = open_with_definition(&version("v1", true, PROPERTIES)).await;
    harness.post(TABS, &tab("v1", r#""cronSpec":"x","replicas":3"#)).await;
    let narrower = r#""cronSpec":{"type":"string","maxLength":0,"x-kubernetes-validations":[{"rule":"true"}]},"image":{"type":"string","default":"nginx"}"#;
    let body = definition(&version("v1", true, narrower));
    let context = Context::system("suite");
    let checked = harness.registry.check_definition(&context, body.as_bytes(), JSON).await.unwrap();
    assert!(checked.installed && (checked.objects, checked.affected_objects) == (1, 1), "{checked:?}");
    let findings = |kind| -> Vec<String> {
        let of_kind = checked.findings.iter().filter(|finding| finding.kind == kind);
        of_kind.map(|f| format!("{} {}: {}", f.object, f.field, f.text)).collect()
    };
    assert_eq!(findings(FindingKind::Error), Vec::<String>::new());
    assert_eq!(
        findings(FindingKind::Breaking),
        [
            " spec.cronSpec: has a lower maxLength, 0",
            " spec.cronSpec: has a new rule: true",
            " spec.replicas: is removed: its values are pruned"
        ]
    );
    assert_eq!(findings(FindingKind::Lost), [r#"default/t : unknown field "spec.replicas""#]);
    assert_eq!(
        findings(FindingKind::Invalid),
        ["default/t spec.cronSpec: Too long: may not be more than 0 bytes"]
    );
    let untyped = definition(&version("v1", true, r#""odd":{}"#));
    let checked = harness.registry.check_definition(&context, untyped.as_bytes(), JSON).await.unwrap();
    assert!(checked.findings.iter().any(|finding| finding.kind == FindingKind::Error), "{checked:?}");
    let now = harness.get(&format!("{TABS}/t")).await;
    assert_eq!(now.at("spec.replicas"), "3");
}

#[tokio::test]
async fn writes_are_refused_if_the_schema_cannot_be_compiled() {
    let harness = open_with_definition(&version("v1", true, PROPERTIES)).await;
    assert_eq!(harness.post(TABS, &tab("v1", r#""replicas":3"#)).await.code, 201);
    // An older server or a direct write to the database may have stored it: the harness refuses such a definition.
    let installed = harness.registry.get(&resource(), "", "crontabs.stable.example.com").await;
    let record = installed.unwrap().record().clone();
    let json = String::from_utf8(record.value.json().to_vec()).unwrap();
    let json = json.replace(r#""generation":1"#, r#""generation":2"#);
    let json = json.replace(r#""replicas":{"type":"integer"}"#, r##""replicas":{"$ref":"#/x"}"##);
    let value = Value::new(json.into_bytes(), Indexed::default());
    let txn = Txn::update(record.key.clone(), record.revision, value);
    harness.registry.store().commit(vec![txn]).await.pop().unwrap().unwrap();
    let shown = harness.get(&format!("{TABS}/t")).await;
    assert_eq!((shown.code, shown.at("spec.replicas").as_str()), (200, "3"), "{}", shown.text);
    let patch = harness.patch(&format!("{TABS}/t"), MERGE, r#"{"spec":{"replicas":"x"}}"#).await;
    let created = harness.post(TABS, &tab("v1", "").replace(r#""t""#, r#""u""#)).await;
    for refused in [patch, created] {
        assert_eq!(
            (refused.code, refused.at("reason").as_str(), refused.at("message").as_str()),
            (
                500,
                "InternalError",
                "Internal error occurred: error resolving resource: the schema of version v1 cannot be used: OpenAPIV3Schema '$ref' is not supported"
            )
        );
    }
    assert_eq!(harness.delete(&format!("{TABS}/t")).await.code, 200);
}
