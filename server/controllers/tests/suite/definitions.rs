//! Tests of CustomResourceDefinitions: names, conditions, APIServices and deletion.

use futures::StreamExt;
use portico_machinery::object::Cursor;
use portico_machinery::{GroupResource, Object};
use portico_registry::{Change, Context};

use crate::harness::{Harness, object};

pub fn definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

pub fn definition(group: &str, plural: &str, kind: &str, short: &[&str]) -> Object {
    let json = format!(
        r#"{{"group":"{group}","scope":"Namespaced","versions":[{{"name":"v1","served":true,"storage":true,
            "schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}],"conversion":{{"strategy":"None"}},
            "names":{{"plural":"{plural}","singular":"{}","kind":"{kind}","listKind":"{kind}List"}}}}"#,
        kind.to_lowercase()
    );
    let spec = Object::from_json(json.as_bytes()).unwrap();
    let name = format!("{plural}.{group}");
    let mut definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &name, "");
    definition.put(&["spec"], spec.into_node());
    definition.set(&["spec", "names", "shortNames"], short);
    definition
}

fn condition<'a>(object: &'a Object, kind: &str) -> Option<Cursor<'a>> {
    object.at(&["status", "conditions"]).items().find(|c| c.field("type").str() == kind)
}

/// Returns status and reason of a condition, such as `True NoConflicts`.
pub fn condition_summary(object: &Object, kind: &str) -> String {
    condition(object, kind)
        .map_or(String::new(), |c| format!("{} {}", c.field("status").str(), c.field("reason").str()))
}

pub fn established(object: Option<Object>) -> Option<Object> {
    object.filter(|object| condition_summary(object, "Established") == "True InitialNamesAccepted")
}

async fn update(harness: &Harness, name: &str, change: impl FnOnce(&mut Object)) {
    let mut object = harness.get(&definitions(), "", name).await;
    change(&mut object);
    let (context, options) = (Context::system("test"), Default::default());
    let part = portico_registry::ObjectPart::Main;
    harness.registry.update(&context, &definitions(), part, object, &options).await.unwrap();
}

#[tokio::test]
async fn watchers_see_a_definition_as_installing_and_then_established() {
    let harness = Harness::open().await;
    let mut feed = harness.registry.follow(&definitions()).await.unwrap();
    harness.create(&definitions(), definition("g.example.com", "bolts", "Bolt", &["bt"])).await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let Some(Change::Put(stored)) = feed.changes.next().await else { panic!() };
        seen.push((
            condition_summary(stored.object(), "NamesAccepted"),
            condition_summary(stored.object(), "Established"),
        ));
    }
    let pair = |names: &str, established: &str| (names.to_owned(), established.to_owned());
    let installing = pair("True NoConflicts", "False Installing");
    assert_eq!(seen, [pair("", ""), installing, pair("True NoConflicts", "True InitialNamesAccepted")]);
    let bolts = harness.get(&definitions(), "", "bolts.g.example.com").await;
    assert_eq!(bolts.at(&["status", "acceptedNames", "kind"]).str(), "Bolt");
    let entries = bolts.at(&["metadata", "managedFields"]);
    let by_server = entries.items().find(|entry| entry.field("subresource").str() == "status").unwrap();
    assert_eq!(by_server.field("manager").str(), "kube-apiserver");
}

#[tokio::test]
async fn the_first_definition_gets_a_name_and_the_next_one_after_its_deletion() {
    let harness = Harness::open().await;
    harness.create(&definitions(), definition("g.example.com", "bolts", "Bolt", &["bt"])).await;
    harness.wait_for_object(&definitions(), "bolts.g.example.com", established).await;
    harness.create(&definitions(), definition("g.example.com", "nuts", "Nut", &["bt"])).await;
    let refused = |object: Option<Object>| {
        object.filter(|object| condition_summary(object, "NamesAccepted") == "False ShortNamesConflict")
    };
    let nuts = harness.wait_for_object(&definitions(), "nuts.g.example.com", refused).await;
    assert_eq!(condition_summary(&nuts, "Established"), "False NotAccepted");
    harness.create(&definitions(), definition("other.example.com", "bolts", "Bolt", &["bt"])).await;
    harness.wait_for_object(&definitions(), "bolts.other.example.com", established).await;

    update(&harness, "bolts.g.example.com", |bolts| bolts.set(&["spec", "names", "shortNames"], ["other"]))
        .await;
    harness.wait_for_object(&definitions(), "nuts.g.example.com", established).await;
}

#[tokio::test]
async fn a_version_has_an_api_service_while_a_definition_serves_it() {
    let harness = Harness::open().await;
    let groups = super::groups();
    harness.create(&definitions(), definition("g.example.com", "bolts", "Bolt", &[])).await;
    let service = harness.wait_for_condition("v1.g.example.com", "True Local").await;
    assert_eq!(service.label("kube-aggregator.kubernetes.io/automanaged"), Some("true"));
    assert_eq!(service.at(&["spec", "groupPriorityMinimum"]).i64(), Some(1000));
    assert_eq!(service.at(&["spec", "versionPriority"]).i64(), Some(100));
    harness.create(&definitions(), definition("g.example.com", "nuts", "Nut", &[])).await;
    harness.wait_for_object(&definitions(), "nuts.g.example.com", established).await;

    // Recreated after a deletion by a client.
    harness.delete(&groups, "", "v1.g.example.com").await;
    harness.wait_for_condition("v1.g.example.com", "True Local").await;

    harness.delete(&definitions(), "", "bolts.g.example.com").await;
    harness
        .wait_for_object(&definitions(), "bolts.g.example.com", |object| object.is_none().then_some(()))
        .await;
    harness.wait_for_condition("v1.g.example.com", "True Local").await;
    harness.delete(&definitions(), "", "nuts.g.example.com").await;
    harness.wait_for_object(&groups, "v1.g.example.com", |object| object.is_none().then_some(())).await;
}

#[tokio::test]
async fn a_protected_group_reports_whether_it_is_approved() {
    let harness = Harness::open().await;
    let mut bolts = definition("example.k8s.io", "bolts", "Bolt", &[]);
    bolts.set(&["metadata", "annotations", "api-approved.kubernetes.io"], "unapproved, a test");
    harness.create(&definitions(), bolts).await;
    let bolts = harness.wait_for_object(&definitions(), "bolts.example.k8s.io", established).await;
    let kind = "KubernetesAPIApprovalPolicyConformant";
    assert_eq!(condition_summary(&bolts, kind), "False UnapprovedAnnotation");
    update(&harness, "bolts.example.k8s.io", |bolts| {
        bolts.set(&["metadata", "annotations", "api-approved.kubernetes.io"], "https://example.com/1");
    })
    .await;
    let approved =
        |object: Option<Object>| object.filter(|o| condition_summary(o, kind) == "True ApprovedAnnotation");
    harness.wait_for_object(&definitions(), "bolts.example.k8s.io", approved).await;
}

/// Checks that the cost per definition does not depend on the others, and that writes share commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_definitions_of_one_group_are_established_together() {
    let harness = Harness::open().await;
    harness.auto_register.completion().completed().signaled().await;
    let all = futures::stream::iter(0..300).for_each_concurrent(32, |i| {
        let harness = &harness;
        let definition = definition("g.example.com", &format!("p{i}s"), &format!("P{i}"), &[]);
        async move { harness.create(&definitions(), definition).await }
    });
    all.await;
    for i in 0..300 {
        harness.wait_for_object(&definitions(), &format!("p{i}s.g.example.com"), established).await;
    }
}
