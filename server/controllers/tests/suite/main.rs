//! Tests of the controllers and the route compiler with a real registry, database and TLS backends.

#![cfg(test)]

mod definitions;
mod harness;
mod instances;
mod rbac;
mod services;
mod storage_migration;

use std::time::Duration;

use futures::StreamExt;
use harness::{Backend, Harness, TIMEOUT, api_service, object};
use portico_machinery::{GroupResource, Object};
use portico_routes::{TableEntry, TableEntryKey, TableUpdate};

fn groups() -> GroupResource {
    GroupResource::new("apiregistration.k8s.io", "apiservices")
}

fn condition_summary(object: &Object) -> String {
    let condition = object.at(&["status", "conditions"]).items().next();
    condition.map_or(String::new(), |c| format!("{} {}", c.field("status").str(), c.field("reason").str()))
}

#[tokio::test]
async fn a_first_start_creates_namespaces_built_in_api_services_and_the_lease() {
    let harness = Harness::open().await;
    harness.namespaces.created().signaled().await;
    harness.lease.acquired().signaled().await;
    harness.auto_register.completion().completed().signaled().await;
    let apps = harness.get(&groups(), "", "v1.apps").await;
    assert_eq!(condition_summary(&apps), "True Local");
    assert_eq!(apps.label("kube-aggregator.kubernetes.io/automanaged"), Some("onstart"));
    assert_eq!(apps.at(&["spec", "groupPriorityMinimum"]).i64(), Some(17_800));
    assert_eq!(condition_summary(&harness.get(&groups(), "", "v1.").await), "True Local");
    let leases = GroupResource::new("coordination.k8s.io", "leases");
    let lease = harness.get(&leases, "kube-system", &harness.identity.id).await;
    assert_eq!(lease.at(&["spec", "leaseDurationSeconds"]).i64(), Some(3600));
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        harness.get(&GroupResource::new("", "namespaces"), "", name).await;
    }
    // A deleted built-in APIService is not recreated before a restart; its route stays.
    harness.delete(&groups(), "", "v1.apps").await;
    assert!(harness.routes.get("v1.apps").is_some_and(|c| c.route.is_local()));
}

#[tokio::test]
async fn a_registered_backend_becomes_available_and_its_route_is_published() {
    let harness = Harness::open().await;
    let backend = Backend::start("avail.wardle.svc").await;
    harness.create(&GroupResource::new("", "namespaces"), object("v1", "Namespace", "wardle", "")).await;
    harness.create(&groups(), api_service("w.example.com", "avail", &backend)).await;
    let name = "v1.w.example.com";
    harness.wait_for_condition(name, "False ServiceNotFound").await;
    let mut service = object("v1", "Service", "avail", "wardle");
    service.set(&["spec", "type"], "ExternalName");
    service.set(&["spec", "externalName"], "127.0.0.1");
    let services = GroupResource::new("", "services");
    harness.create(&services, service).await;
    harness.wait_for_condition(name, "True Passed").await;
    harness.wait_for_route(name, |route| route.available.ok).await;
    let route = harness.routes.get(name).unwrap().route;
    assert_eq!(route.backend.as_ref().unwrap().targets[0].to_string(), backend.addr.to_string());
    let stages = harness.routes.explain("/apis/w.example.com/v1/flunders", &portico_routes::NoExplainSource);
    assert!(stages.iter().all(|s| s.ok), "{stages:?}");

    harness.delete(&services, "wardle", "avail").await;
    harness.wait_for_condition(name, "False ServiceNotFound").await;
    harness
        .wait_for_route(name, |route| route.backend.as_ref().is_some_and(|b| b.resolve_error.is_some()))
        .await;
    harness.delete(&groups(), "", name).await;
    while harness.routes.get(name).is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_dead_backend_is_reported_with_the_cause_and_a_live_one_does_not_wait_for_it() {
    let harness = Harness::open().await;
    let (dead, live) = (Backend::start("dead.wardle.svc").await, Backend::start("live.wardle.svc").await);
    dead.tasks.shutdown(Duration::from_secs(5)).await;
    harness.create(&groups(), by_url(api_service("dead.example.com", "dead", &dead), &dead)).await;
    harness.create(&groups(), by_url(api_service("live.example.com", "live", &live), &live)).await;
    harness.wait_for_condition("v1.live.example.com", "True Passed").await;
    let dead = harness.wait_for_condition("v1.dead.example.com", "False FailedDiscoveryCheck").await;
    let message =
        dead.at(&["status", "conditions"]).items().next().unwrap().field("message").str().to_owned();
    assert!(message.contains("cannot connect to 127.0.0.1:"), "{message}");
}

/// Measures the time from the write to the published route, which delays the first proxied request. The next periodic probe is
/// due after thirty seconds, so an earlier result is an effect of the write.
#[tokio::test]
async fn a_created_group_is_routed_and_available_without_waiting_for_the_probe_interval() {
    let harness = Harness::open().await;
    harness.auto_register.completion().completed().signaled().await;
    let backend = Backend::start("live.wardle.svc").await;
    let mut reader = harness.routes.publisher().subscribe(None);
    for i in 0..20 {
        let group = format!("g{i}.example.com");
        let key = TableEntryKey::Route(format!("v1.{group}").into());
        harness.create(&groups(), by_url(api_service(&group, "live", &backend), &backend)).await;
        let available = async {
            loop {
                let entry = match reader.next().await {
                    TableUpdate::Snapshot(s) => {
                        s.entries.into_iter().find(|(k, _)| *k == key).map(|(_, e)| e)
                    }
                    TableUpdate::Delta(d) => {
                        d.changes.into_iter().find(|(k, _)| *k == key).and_then(|(_, e)| e)
                    }
                };
                if matches!(entry, Some(TableEntry::Route(route)) if route.available.ok) {
                    break;
                }
            }
        };
        let soon = tokio::time::timeout(TIMEOUT, available).await;
        assert!(soon.is_ok(), "{group} is not available");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_condition_is_written_after_many_creations_and_deletions() {
    let harness = Harness::open().await;
    let backend = Backend::start("live.wardle.svc").await;
    let group = |i: usize| format!("s{i}.example.com");
    let storm = futures::stream::iter(0..600).for_each_concurrent(64, |i| {
        let (harness, object) = (&harness, api_service(&group(i), "missing", &backend));
        async move {
            harness.create(&groups(), object).await;
            if i % 3 == 0 {
                harness.delete(&groups(), "", &format!("v1.{}", group(i))).await;
            }
        }
    });
    storm.await;
    for i in (0..600).filter(|i| i % 3 != 0) {
        harness.wait_for_condition(&format!("v1.{}", group(i)), "False ServiceNotFound").await;
    }
    let route_count =
        || harness.routes.list().into_iter().filter(|c| c.route.name.starts_with("v1.s")).count();
    let deleted = async {
        while route_count() != 400 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, deleted).await.unwrap();
}

fn by_url(mut api_service: Object, backend: &Backend) -> Object {
    let url = format!("https://{}", backend.addr);
    api_service.set(&["metadata", "annotations", "portico.dev/backend-urls"], url);
    api_service
}
