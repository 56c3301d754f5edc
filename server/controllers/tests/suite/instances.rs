//! Tests of custom resources: deletion with their definition, namespace or owner, and storage migration.

use portico_kit::metrics::Format;
use portico_machinery::object::OwnerReference;
use portico_machinery::{GroupResource, Object};
use portico_registry::{Context, DeleteOptions, ObjectPart, Propagation, UpdateOptions, condition};

use crate::definitions::{condition_summary, definition, definitions, established};
use crate::harness::{Harness, TIMEOUT, object};

const NAME: &str = "bolts.g.example.com";

fn bolts() -> GroupResource {
    GroupResource::new("g.example.com", "bolts")
}

fn bolt(name: &str, namespace: &str) -> Object {
    object("g.example.com/v1", "Bolt", name, namespace)
}

/// Opens a harness that serves bolts.
async fn open() -> Harness {
    let harness = Harness::open().await;
    harness.namespaces.created().signaled().await;
    define(&harness).await;
    harness
}

async fn define(harness: &Harness) {
    harness.create(&definitions(), definition("g.example.com", "bolts", "Bolt", &[])).await;
    harness.wait_for_object(&definitions(), NAME, established).await;
}

async fn wait_until_gone(harness: &Harness, resource: &GroupResource, name: &str) {
    harness.wait_for_object(resource, name, |object| object.is_none().then_some(())).await;
}

async fn remove_finalizers(harness: &Harness, name: &str) {
    let mut object = harness.get(&bolts(), "default", name).await;
    object.remove(&["metadata", "finalizers"]);
    let (context, options) = (Context::system("test"), UpdateOptions::default());
    harness.registry.update(&context, &bolts(), ObjectPart::Main, object, &options).await.unwrap();
}

#[tokio::test]
async fn a_definition_is_deleted_after_its_instances_and_can_be_recreated() {
    let harness = open().await;
    for i in 0..3 {
        harness.create(&bolts(), bolt(&format!("b{i}"), ["default", "kube-system"][i % 2])).await;
    }
    let mut with_finalizer = bolt("held", "default");
    with_finalizer.set(&["metadata", "finalizers"], ["example.com/mine"]);
    harness.create(&bolts(), with_finalizer).await;
    harness.delete(&definitions(), "", NAME).await;

    let in_progress = |object: Option<Object>| {
        object.filter(|object| condition_summary(object, "Terminating") == "True InstanceDeletionInProgress")
    };
    harness.wait_for_object(&definitions(), NAME, in_progress).await;
    let one_left = async {
        while harness.registry.list(&bolts(), "", &Default::default()).await.unwrap().items.len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    one_left.await;
    remove_finalizers(&harness, "held").await;
    wait_until_gone(&harness, &definitions(), NAME).await;

    define(&harness).await;
    assert!(harness.registry.list(&bolts(), "", &Default::default()).await.unwrap().items.is_empty());
    harness.create(&bolts(), bolt("b0", "default")).await;
}

#[tokio::test]
async fn a_definition_that_was_never_established_is_finalized_without_waiting() {
    let harness = open().await;
    let mut rival = definition("g.example.com", "others", "Bolt", &[]);
    // A foreign finalizer keeps the definition, so that its last conditions can be checked.
    rival.set(&["metadata", "finalizers"], ["example.com/hold"]);
    harness.create(&definitions(), rival).await;
    let has_condition = |kind: &'static str, expected: &'static str| {
        move |object: Option<Object>| object.filter(|object| condition_summary(object, kind) == expected)
    };
    let rival = "others.g.example.com";
    harness
        .wait_for_object(&definitions(), rival, has_condition("NamesAccepted", "False ListKindConflict"))
        .await;
    harness.delete(&definitions(), "", rival).await;
    harness
        .wait_for_object(&definitions(), rival, has_condition("Terminating", "False NeverEstablished"))
        .await;
}

#[tokio::test]
async fn instances_are_deleted_with_their_namespace_or_owner() {
    let harness = open().await;
    let namespaces = GroupResource::new("", "namespaces");
    harness.create(&namespaces, object("v1", "Namespace", "doomed", "")).await;
    harness.create(&bolts(), bolt("b", "doomed")).await;
    harness.delete(&namespaces, "", "doomed").await;
    wait_until_gone(&harness, &namespaces, "doomed").await;
    assert!(harness.registry.list(&bolts(), "doomed", &Default::default()).await.unwrap().items.is_empty());

    harness.create(&bolts(), bolt("owner", "default")).await;
    let owner = harness.get(&bolts(), "default", "owner").await;
    let mut owned = bolt("owned", "default");
    let reference = portico_machinery::object::OwnerReference {
        api_version: "g.example.com/v1".into(),
        kind: "Bolt".into(),
        name: "owner".into(),
        uid: owner.uid().into(),
        ..Default::default()
    };
    owned.set(&["metadata", "ownerReferences"], [reference]);
    harness.create(&bolts(), owned).await;
    harness.delete(&bolts(), "default", "owner").await;
    let collected = async {
        while !harness.registry.list(&bolts(), "", &Default::default()).await.unwrap().items.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, collected).await.unwrap();
}

/// Returns the number of passes of the namespace controller.
fn passes(harness: &Harness) -> usize {
    let text = harness.metrics.encode(Format::Text);
    let count = "workqueue_work_duration_seconds_count{name=\"namespace\"} ";
    text.lines().find_map(|line| line.strip_prefix(count)?.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn a_namespace_gets_another_pass_when_all_remaining_objects_are_gone() {
    const HELD: usize = 100;
    let harness = open().await;
    let namespaces = GroupResource::new("", "namespaces");
    harness.create(&namespaces, object("v1", "Namespace", "held", "")).await;
    for n in 0..HELD {
        let mut bolt = bolt(&format!("b{n}"), "held");
        bolt.set(&["metadata", "finalizers"], ["example.com/hold"]);
        harness.create(&bolts(), bolt).await;
    }
    harness.delete(&namespaces, "", "held").await;
    harness
        .wait_for_object(&namespaces, "held", |namespace| {
            let conditions = namespace?.at(&["status", "conditions"]).printed();
            conditions.contains("has 100 resource instances").then_some(())
        })
        .await;
    for n in 0..HELD {
        let mut bolt = harness.get(&bolts(), "held", &format!("b{n}")).await;
        bolt.remove(&["metadata", "finalizers"]);
        let (context, options) = (Context::system("test"), UpdateOptions::default());
        harness.registry.update(&context, &bolts(), ObjectPart::Main, bolt, &options).await.unwrap();
    }
    wait_until_gone(&harness, &namespaces, "held").await;
    let passes = passes(&harness);
    assert!(passes < HELD / 2, "{passes} passes");
}

/// Makes v2 the storage version of bolts.
async fn store_in_v2(harness: &Harness, v1_is_served: bool) {
    let json = format!(
        r#"{{"versions":[{{"name":"v1","served":{v1_is_served},"storage":false,"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}},
        {{"name":"v2","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}]}}"#
    );
    let mut object = harness.get(&definitions(), "", NAME).await;
    object.copy_from(&versions(json.as_bytes()), &["spec", "versions"]);
    let (context, options) = (Context::system("test"), UpdateOptions::default());
    harness.registry.update(&context, &definitions(), ObjectPart::Main, object, &options).await.unwrap();
}

#[tokio::test]
async fn owners_and_dependents_in_an_older_storage_version_are_deleted_with_the_requested_propagation() {
    for (propagation, v1_is_served, stays) in [
        (Propagation::Orphan, true, true),
        (Propagation::Orphan, false, true),
        (Propagation::Foreground, true, false),
        (Propagation::Foreground, false, false),
        (Propagation::Background, false, false),
    ] {
        let harness = open().await;
        harness.create(&bolts(), bolt("owner", "default")).await;
        let mut owned = bolt("owned", "default");
        let reference = OwnerReference {
            api_version: "g.example.com/v1".into(),
            kind: "Bolt".into(),
            name: "owner".into(),
            uid: harness.get(&bolts(), "default", "owner").await.uid().into(),
            block_owner_deletion: Some(true),
            ..Default::default()
        };
        owned.set(&["metadata", "ownerReferences"], [reference]);
        harness.create(&bolts(), owned).await;
        store_in_v2(&harness, v1_is_served).await;
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        harness
            .registry
            .delete(&Context::system("test"), &bolts(), "default", "owner", &options)
            .await
            .unwrap();
        let converged = async {
            loop {
                let remaining = harness.registry.list(&bolts(), "", &Default::default()).await.unwrap().items;
                let names: Vec<&str> = remaining.iter().map(|bolt| bolt.name()).collect();
                let free = remaining.iter().all(|bolt| bolt.object().owner_references().is_empty());
                if names == ["owned"] && stays && free || names.is_empty() && !stays {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        let converged = tokio::time::timeout(TIMEOUT, converged).await;
        assert!(converged.is_ok(), "{propagation:?}, v1 served: {v1_is_served}");
    }
}

#[tokio::test]
async fn a_resource_that_cannot_be_listed_does_not_stop_the_deletion_of_others_in_its_namespace() {
    let harness = open().await;
    let (namespaces, roles) =
        (GroupResource::new("", "namespaces"), GroupResource::new("rbac.authorization.k8s.io", "roles"));
    harness.create(&namespaces, object("v1", "Namespace", "doomed", "")).await;
    harness.create(&bolts(), bolt("b", "doomed")).await;
    harness.create(&roles, object("rbac.authorization.k8s.io/v1", "Role", "r", "doomed")).await;
    let mut unreachable = harness.get(&definitions(), "", NAME).await;
    unreachable.set(&["spec", "conversion", "strategy"], "Webhook");
    unreachable.set(&["spec", "conversion", "webhook", "conversionReviewVersions"], ["v1"]);
    unreachable.set(&["spec", "conversion", "webhook", "clientConfig", "url"], "https://127.0.0.1:1/convert");
    let (context, options) = (Context::system("test"), UpdateOptions::default());
    harness.registry.update(&context, &definitions(), ObjectPart::Main, unreachable, &options).await.unwrap();
    store_in_v2(&harness, true).await;
    assert!(harness.registry.list(&bolts(), "doomed", &Default::default()).await.is_err());
    harness.delete(&namespaces, "", "doomed").await;
    harness
        .wait_for_object(&namespaces, "doomed", |namespace| {
            let conditions = namespace?.at(&["status", "conditions"]).printed();
            conditions.contains("ContentDeletionFailed").then_some(())
        })
        .await;
    assert!(harness.registry.list(&roles, "doomed", &Default::default()).await.unwrap().items.is_empty());
    let retried = "workqueue_retries_total{name=\"namespace\"} ";
    harness
        .wait_for_object(&namespaces, "doomed", |_| {
            let metrics = harness.metrics.encode(Format::Text);
            let line = metrics.lines().find_map(|line| line.strip_prefix(retried));
            line.filter(|count| *count != "0").map(drop)
        })
        .await;
    let mut converted = harness.get(&definitions(), "", NAME).await;
    converted.set(&["spec", "conversion", "strategy"], "None");
    converted.remove(&["spec", "conversion", "webhook"]);
    harness.registry.update(&context, &definitions(), ObjectPart::Main, converted, &options).await.unwrap();
    harness.wait_for_object(&namespaces, "doomed", |namespace| namespace.is_none().then_some(())).await;
}

#[tokio::test]
async fn objects_of_an_unserved_resource_do_not_block_the_deletion_of_a_namespace() {
    let harness = open().await;
    let namespaces = GroupResource::new("", "namespaces");
    harness.create(&namespaces, object("v1", "Namespace", "doomed", "")).await;
    harness.create(&bolts(), bolt("b", "doomed")).await;
    let resource = portico_store::Resource::new("off.example.com", "things");
    let key = portico_store::Key::new(&resource, "doomed", "left");
    let json = br#"{"apiVersion":"off.example.com/v1","kind":"Thing","metadata":{"name":"left","namespace":"doomed"}}"#;
    let value = portico_store::Value::new(json.as_slice(), portico_store::Indexed::default());
    let written = harness.registry.store().commit(vec![portico_store::Txn::create(key, value)]).await;
    assert!(written.iter().all(Result::is_ok));
    harness.delete(&namespaces, "", "doomed").await;
    wait_until_gone(&harness, &namespaces, "doomed").await;
    assert!(harness.registry.list(&bolts(), "doomed", &Default::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_migration_rewrites_objects_in_the_new_version_and_drops_the_old_one() {
    let harness = open().await;
    harness.create(&bolts(), bolt("b", "default")).await;
    let mut object = harness.get(&definitions(), "", NAME).await;
    let json = br#"{"versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},
        {"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}"#;
    object.copy_from(&versions(json), &["spec", "versions"]);
    let (context, options) = (Context::system("test"), UpdateOptions::default());
    harness.registry.update(&context, &definitions(), ObjectPart::Main, object, &options).await.unwrap();
    let both = ["v1", "v2"];
    let mut status = harness.get(&definitions(), "", NAME).await;
    status.set(&["status", "storedVersions"], both);
    harness.registry.update_status(&context, &definitions(), status).await.unwrap();

    let migrations = GroupResource::new("storagemigration.k8s.io", "storageversionmigrations");
    let kind = ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration");
    let mut migration = crate::harness::object(kind.0, kind.1, "m", "");
    migration.set(&["spec", "resource", "group"], "g.example.com");
    migration.set(&["spec", "resource", "resource"], "bolts");
    harness.create(&migrations, migration).await;
    let ended = |object: Option<Object>| {
        let running = condition::get(&object?, "Running")?;
        (running.status == "False").then_some(())
    };
    harness.wait_for_object(&migrations, "m", ended).await;
    let migrated = harness.get(&migrations, "", "m").await;
    assert!(condition::is_true(&migrated, "Succeeded"), "{migrated:?}");
    let definition = harness.get(&definitions(), "", NAME).await;
    assert_eq!(condition_summary(&definition, "StorageMigrating"), "False MigrationSucceeded");
    assert_eq!(definition.at(&["status", "storedVersions"]).len(), 1);
    let object_ref =
        portico_registry::ObjectRef { resource: bolts(), namespace: "default".into(), name: "b".into() };
    let stored = harness.registry.get_stored(&object_ref).await.unwrap().unwrap();
    assert_eq!(stored.object().api_version(), "g.example.com/v2");
}

fn versions(json: &[u8]) -> Object {
    let mut object = Object::default();
    object.put(&["spec"], Object::from_json(json).unwrap().into_node());
    object
}

#[tokio::test]
async fn a_no_op_update_writes_only_objects_in_another_storage_version() {
    let harness = open().await;
    harness.create(&bolts(), bolt("b", "default")).await;
    let with = |schema: &str| {
        versions(format!(r#"{{"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}]}}"#).as_bytes())
    };
    let (context, options) = (Context::system("test"), UpdateOptions::default());
    let schemas = [
        (r#"{"type":"object","description":"the same"}"#, true),
        (r#"{"type":"object","properties":{"size":{"type":"integer","default":3}}}"#, false),
    ];
    for (schema, is_left) in schemas {
        let mut definition = harness.get(&definitions(), "", NAME).await;
        definition.copy_from(&with(schema), &["spec", "versions"]);
        harness
            .registry
            .update(&context, &definitions(), ObjectPart::Main, definition, &options)
            .await
            .unwrap();
        let read = harness.get(&bolts(), "default", "b").await;
        let before = read.resource_version().to_owned();
        let written =
            harness.registry.update(&context, &bolts(), ObjectPart::Main, read, &options).await.unwrap();
        assert_eq!(written.stored.revision().to_string() == before, is_left, "{schema}");
    }
}
