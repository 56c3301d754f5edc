//! Tests of storage migrations.

use portico_machinery::{GroupResource, Object};
use portico_registry::condition;

use crate::harness::{Harness, object};

fn migrations() -> GroupResource {
    GroupResource::new("storagemigration.k8s.io", "storageversionmigrations")
}

fn migration(name: &str, resource: &str) -> Object {
    let mut migration = object("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", name, "");
    migration.set(&["spec", "resource", "group"], "");
    migration.set(&["spec", "resource", "resource"], resource);
    migration
}

/// Waits until a migration has ended, and returns its conditions.
async fn wait_until_ended(harness: &Harness, name: &str) -> Vec<String> {
    let ended = |object: Option<Object>| {
        let object = object?;
        let running = condition::get(&object, "Running")?;
        let summary = |c: portico_machinery::object::Cursor<'_>| {
            format!("{} {} {}", c.field("type").str(), c.field("status").str(), c.field("reason").str())
        };
        let all = || object.at(&["status", "conditions"]).items().map(summary).collect();
        (running.status == "False").then(all)
    };
    harness.wait_for_object(&migrations(), name, ended).await
}

#[tokio::test]
async fn migrations_of_a_resource_run_one_after_another_and_succeed() {
    let harness = Harness::open().await;
    harness.namespaces.created().signaled().await;
    for i in 0..3 {
        harness
            .create(
                &GroupResource::new("", "configmaps"),
                object("v1", "ConfigMap", &format!("c{i}"), "default"),
            )
            .await;
    }
    harness.create(&migrations(), migration("first", "configmaps")).await;
    harness.create(&migrations(), migration("second", "configmaps")).await;
    for name in ["first", "second"] {
        let reported = wait_until_ended(&harness, name).await;
        let succeeded = "Succeeded True StorageVersionMigrationSucceeded";
        assert_eq!(reported, ["Running False MigrationCompleted", succeeded]);
        let object = harness.get(&migrations(), "", name).await;
        assert!(object.at(&["status", "resourceVersion"]).str().parse::<i64>().is_ok());
    }
}

#[tokio::test]
async fn the_migration_of_a_read_only_resource_fails() {
    let harness = Harness::open().await;
    harness.create(&migrations(), migration("reviews", "componentstatuses")).await;
    let reported = wait_until_ended(&harness, "reviews").await;
    assert_eq!(reported, ["Running False MigrationCompleted", "Failed True StorageVersionMigrationFailed"]);
    let object = harness.get(&migrations(), "", "reviews").await;
    assert_eq!(
        condition::get(&object, "Failed").unwrap().message,
        "resource \"componentstatuses\" does not support discovery operations: [update patch list]"
    );
}
