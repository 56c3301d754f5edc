//! Quotas: exact with concurrent writers, and updated within a second after a deletion.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::{API_SERVICES, DEFINITIONS};
use portico_tests::{Backend, Behavior, Launch, Portico, eventually, within};
use serde_json::{Value, json};

const NAMESPACE: &str = "/api/v1/namespaces/default";
/// Time limit for expected changes, with a margin for a busy machine.
const PROMPT: Duration = Duration::from_secs(5);

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn pod(name: &str, requests: Value) -> Value {
    json!({"metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]}})
}

async fn limit(http: &Http, name: &str, spec: Value) {
    let quota = json!({"metadata": {"name": name}, "spec": spec});
    let answer = http.post(&format!("{NAMESPACE}/resourcequotas"), &quota).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn status(http: &Http, name: &str) -> Value {
    http.get(&format!("{NAMESPACE}/resourcequotas/{name}")).await.json()["status"].clone()
}

/// Waits until the usage of a quota is exactly this.
async fn wait_for_usage(http: &Http, name: &str, expected: Value) {
    within(PROMPT, &format!("the usage of {name} is updated"), || async {
        let status = status(http, name).await;
        if status["used"] == expected { Ok(()) } else { Err(format!("{status} for {expected}")) }
    })
    .await;
}

/// Waits until a namespace has a service account, which pods require.
async fn start_for_pods(portico: &Portico) -> Http {
    let admin = portico.admin();
    let account = format!("{NAMESPACE}/serviceaccounts/default");
    portico_tests::wait_until("the service account exists", async || admin.get(&account).await.status == 200)
        .await;
    admin
}

/// Counts the responses by code.
fn codes(answers: &[FullResponse]) -> BTreeMap<u16, usize> {
    let mut codes = BTreeMap::new();
    answers.iter().for_each(|answer| *codes.entry(answer.status.as_u16()).or_default() += 1);
    codes
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creations_are_limited_exactly() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    limit(&admin, "hundred", json!({"hard": {"count/secrets": "100"}})).await;
    wait_for_usage(&admin, "hundred", json!({"count/secrets": "0"})).await;
    let secrets = format!("{NAMESPACE}/secrets");
    let create = |n: usize| {
        let (admin, secrets) = (&admin, &secrets);
        async move { admin.post(secrets, &named(&format!("s-{n}"))).await }
    };
    let answers = join_all((0..200).map(create)).await;
    assert_eq!(codes(&answers), BTreeMap::from([(201, 100), (403, 100)]));
    let words = "is forbidden: exceeded quota: hundred, requested: count/secrets=1, used: count/secrets=100, \
                 limited: count/secrets=100";
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 403).collect();
    assert!(refused.iter().all(|answer| answer.text().contains(words)), "{}", refused[0].text());
    wait_for_usage(&admin, "hundred", json!({"count/secrets": "100"})).await;
    assert_eq!(admin.get(&secrets).await.json()["items"].as_array().unwrap().len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creations_and_deletions_are_counted_exactly() {
    let portico = Launch::new().args(&["--resource-quota-sync-period", "20ms"]).start().await;
    let admin = portico.admin();
    limit(&admin, "quota", json!({"hard": {"count/secrets": "40"}})).await;
    wait_for_usage(&admin, "quota", json!({"count/secrets": "0"})).await;
    let (secrets, created) = (format!("{NAMESPACE}/secrets"), Arc::new(AtomicUsize::new(0)));
    // Each worker alternates between creation and deletion, and keeps every third object: never more than 40 may exist.
    let work = |worker: usize| {
        let (admin, secrets, created) = (&admin, &secrets, Arc::clone(&created));
        async move {
            for n in 0..12 {
                let name = format!("s-{worker}-{n}");
                let answer = admin.post(secrets, &named(&name)).await;
                match answer.status.as_u16() {
                    201 if n % 3 == 0 => drop(created.fetch_add(1, Ordering::Relaxed)),
                    201 => assert_eq!(admin.delete(&format!("{secrets}/{name}")).await.status, 200),
                    code => assert_eq!(code, 403, "{}", answer.text()),
                }
                let secret_count = admin.get(secrets).await.json()["items"].as_array().unwrap().len();
                assert!(secret_count <= 40, "{secret_count} secrets exceed the quota of 40");
            }
        }
    };
    join_all((0..12).map(work)).await;
    let created_count = created.load(Ordering::Relaxed);
    wait_for_usage(&admin, "quota", json!({"count/secrets": created_count.to_string()})).await;
    assert_eq!(admin.get(&secrets).await.json()["items"].as_array().unwrap().len(), created_count);
    // The free part of the quota is usable completely.
    for n in created_count..40 {
        assert_eq!(admin.post(&secrets, &named(&format!("more-{n}"))).await.status, 201);
    }
    assert_eq!(admin.post(&secrets, &named("one-more")).await.status, 403);
    wait_for_usage(&admin, "quota", json!({"count/secrets": "40"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_during_the_creation_of_a_quota_are_counted() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let create = |n: usize| {
        let admin = &admin;
        async move {
            if n == 20 {
                limit(admin, "quota", json!({"hard": {"count/secrets": "1000"}})).await;
            }
            assert_eq!(
                admin.post(&format!("{NAMESPACE}/secrets"), &named(&format!("s-{n}"))).await.status,
                201
            );
        }
    };
    join_all((0..60).map(create)).await;
    wait_for_usage(&admin, "quota", json!({"count/secrets": "60"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_is_checked_and_not_charged() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    limit(&admin, "quota", json!({"hard": {"secrets": "1"}})).await;
    wait_for_usage(&admin, "quota", json!({"secrets": "0"})).await;
    let dry = format!("{NAMESPACE}/secrets?dryRun=All");
    for name in ["a", "b"] {
        assert_eq!(admin.post(&dry, &named(name)).await.status, 201);
    }
    assert_eq!(admin.post(&format!("{NAMESPACE}/secrets"), &named("a")).await.status, 201);
    let refused = admin.post(&dry, &named("b")).await;
    assert!(
        refused
            .text()
            .contains("exceeded quota: quota, requested: secrets=1, used: secrets=1, limited: secrets=1")
    );
    wait_for_usage(&admin, "quota", json!({"secrets": "1"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_reductions_release_quota() {
    let portico = Portico::start().await;
    let admin = start_for_pods(&portico).await;
    limit(
        &admin,
        "all",
        json!({"hard": {"pods": "2", "count/pods": "3", "requests.cpu": "2", "services.nodeports": "2"}}),
    )
    .await;
    wait_for_usage(
        &admin,
        "all",
        json!({"pods": "0", "count/pods": "0", "requests.cpu": "0", "services.nodeports": "0"}),
    )
    .await;
    for name in ["a", "b"] {
        let answer = admin.post(&format!("{NAMESPACE}/pods"), &pod(name, json!({"cpu": "1"}))).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    wait_for_usage(
        &admin,
        "all",
        json!({"pods": "2", "count/pods": "2", "requests.cpu": "2", "services.nodeports": "0"}),
    )
    .await;
    let ended = json!({"status": {"phase": "Succeeded"}});
    assert_eq!(admin.merge(&format!("{NAMESPACE}/pods/a/status"), &ended).await.status, 200);
    wait_for_usage(
        &admin,
        "all",
        json!({"pods": "1", "count/pods": "2", "requests.cpu": "1", "services.nodeports": "0"}),
    )
    .await;
    assert_eq!(admin.delete(&format!("{NAMESPACE}/pods/b?gracePeriodSeconds=0")).await.status, 200);
    wait_for_usage(
        &admin,
        "all",
        json!({"pods": "0", "count/pods": "1", "requests.cpu": "0", "services.nodeports": "0"}),
    )
    .await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}});
    assert_eq!(admin.post(&format!("{NAMESPACE}/services"), &service).await.status, 201);
    wait_for_usage(
        &admin,
        "all",
        json!({"pods": "0", "count/pods": "1", "requests.cpu": "0", "services.nodeports": "2"}),
    )
    .await;
    let inside = json!({"spec": {"type": "ClusterIP"}});
    assert_eq!(admin.merge(&format!("{NAMESPACE}/services/s"), &inside).await.status, 200);
    wait_for_usage(
        &admin,
        "all",
        json!({"pods": "0", "count/pods": "1", "requests.cpu": "0", "services.nodeports": "0"}),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_not_counted_after_its_grace_period() {
    let portico = Portico::start().await;
    let admin = start_for_pods(&portico).await;
    limit(&admin, "quota", json!({"hard": {"pods": "2", "count/pods": "2"}})).await;
    wait_for_usage(&admin, "quota", json!({"pods": "0", "count/pods": "0"})).await;
    let mut bound = pod("a", json!({}));
    bound["spec"]["nodeName"] = "away".into();
    assert_eq!(admin.post(&format!("{NAMESPACE}/pods"), &bound).await.status, 201);
    wait_for_usage(&admin, "quota", json!({"pods": "1", "count/pods": "1"})).await;
    assert_eq!(admin.delete(&format!("{NAMESPACE}/pods/a?gracePeriodSeconds=1")).await.status, 200);
    wait_for_usage(&admin, "quota", json!({"pods": "0", "count/pods": "1"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_are_charged_the_difference() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    limit(&admin, "quota", json!({"hard": {"requests.storage": "10Gi", "services.loadbalancers": "0"}}))
        .await;
    wait_for_usage(&admin, "quota", json!({"requests.storage": "0", "services.loadbalancers": "0"})).await;
    let class = json!({"metadata": {"name": "gold"}, "provisioner": "x", "allowVolumeExpansion": true});
    assert_eq!(admin.post("/apis/storage.k8s.io/v1/storageclasses", &class).await.status, 201);
    let size = |size: &str| json!({"resources": {"requests": {"storage": size}}});
    let mut claim = json!({"metadata": {"name": "c"}, "spec": size("4Gi")});
    claim["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
    claim["spec"]["storageClassName"] = "gold".into();
    let claims = format!("{NAMESPACE}/persistentvolumeclaims");
    assert_eq!(admin.post(&claims, &claim).await.status, 201);
    let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "4Gi"}}});
    assert_eq!(admin.merge(&format!("{claims}/c/status"), &bound).await.status, 200);
    let grown = admin.merge(&format!("{claims}/c"), &json!({"spec": size("9Gi")})).await;
    assert_eq!(grown.status, 200, "{}", grown.text());
    wait_for_usage(&admin, "quota", json!({"requests.storage": "9Gi", "services.loadbalancers": "0"})).await;
    let refused = admin.merge(&format!("{claims}/c"), &json!({"spec": size("11Gi")})).await;
    let words = "exceeded quota: quota, requested: requests.storage=2Gi, used: requests.storage=9Gi, limited: requests.storage=10Gi";
    assert!(refused.text().contains(words), "{}", refused.text());
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}});
    assert_eq!(admin.post(&format!("{NAMESPACE}/services"), &service).await.status, 201);
    let refused =
        admin.merge(&format!("{NAMESPACE}/services/s"), &json!({"spec": {"type": "LoadBalancer"}})).await;
    let words = "exceeded quota: quota, requested: services.loadbalancers=1, used: services.loadbalancers=0, limited: services.loadbalancers=0";
    assert!(refused.text().contains(words), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_status_is_corrected() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    limit(&admin, "quota", json!({"hard": {"secrets": "1"}})).await;
    wait_for_usage(&admin, "quota", json!({"secrets": "0"})).await;
    let path = format!("{NAMESPACE}/resourcequotas/quota");
    let more = json!({"spec": {"hard": {"secrets": "2", "services": "3"}}});
    assert_eq!(admin.merge(&path, &more).await.status, 200);
    wait_for_usage(&admin, "quota", json!({"secrets": "0", "services": "1"})).await;
    assert_eq!(status(&admin, "quota").await["hard"], json!({"secrets": "2", "services": "3"}));
    let other = json!({"status": {"hard": {"secrets": "9"}, "used": null}});
    assert_eq!(admin.merge(&format!("{path}/status"), &other).await.status, 200);
    wait_for_usage(&admin, "quota", json!({"secrets": "0", "services": "1"})).await;
    assert_eq!(status(&admin, "quota").await["hard"], json!({"secrets": "2", "services": "3"}));
    let managers = admin.get(&path).await.json()["metadata"]["managedFields"].clone();
    let managers = managers.as_array().unwrap();
    assert!(
        managers.iter().any(|m| m["manager"] == "kube-controller-manager" && m["subresource"] == "status"),
        "{managers:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_are_counted_also_when_they_are_defined_after_the_quota() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    limit(&admin, "quota", json!({"hard": {"count/widgets.example.com": "1", "secrets": "1"}})).await;
    wait_for_usage(&admin, "quota", json!({"secrets": "0"})).await;
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version]}});
    assert_eq!(admin.post(DEFINITIONS, &definition).await.status, 201);
    wait_for_usage(&admin, "quota", json!({"count/widgets.example.com": "0", "secrets": "0"})).await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget =
        |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    eventually("the first widget is created", || async {
        let answer = admin.post(widgets, &widget("a")).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let refused = admin.post(widgets, &widget("b")).await;
    let words = "widgets.example.com \\\"b\\\" is forbidden: exceeded quota: quota, requested: count/widgets.example.com=1, \
                 used: count/widgets.example.com=1, limited: count/widgets.example.com=1";
    assert!(refused.text().contains(words), "{}", refused.text());
    assert_eq!(admin.delete(&format!("{widgets}/a")).await.status, 200);
    wait_for_usage(&admin, "quota", json!({"count/widgets.example.com": "0", "secrets": "0"})).await;
    assert_eq!(admin.post(widgets, &widget("b")).await.status, 201);
    assert_eq!(admin.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.status, 200);
    wait_for_usage(&admin, "quota", json!({"count/widgets.example.com": "0", "secrets": "0"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregated_objects_are_counted_and_dead_servers_ignored() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let (well, dead) = (Backend::start("well.example.com").await, Backend::start("dead.example.com").await);
    dead.set_behavior(Behavior::Hang);
    well.set_list_size(2);
    for backend in [&well, &dead] {
        assert_eq!(admin.post(API_SERVICES, &backend.api_service()).await.status, 201);
    }
    let hard = json!({"count/flunders.well.example.com": "5", "count/flunders.dead.example.com": "5", "secrets": "1"});
    limit(&admin, "quota", json!({"hard": hard})).await;
    wait_for_usage(&admin, "quota", json!({"count/flunders.well.example.com": "2", "secrets": "0"})).await;
    well.set_list_size(1);
    wait_for_usage(&admin, "quota", json!({"count/flunders.well.example.com": "1", "secrets": "0"})).await;
    well.set_behavior(Behavior::Code(500));
    assert_eq!(admin.post(&format!("{NAMESPACE}/secrets"), &named("a")).await.status, 201);
    wait_for_usage(&admin, "quota", json!({"count/flunders.well.example.com": "1", "secrets": "1"})).await;
    let quota_requests = well.requests();
    let controller = "system:serviceaccount:kube-system:resourcequota-controller";
    assert!(
        quota_requests.iter().any(|seen| seen.all("x-remote-user") == [controller]),
        "{quota_requests:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_controller_a_quota_has_no_effect() {
    let portico = Launch::new().arg("--controllers=*,-resourcequota-controller").start().await;
    let admin = portico.admin();
    limit(&admin, "quota", json!({"hard": {"secrets": "0"}})).await;
    assert_eq!(admin.post(&format!("{NAMESPACE}/secrets"), &named("a")).await.status, 201);
    assert_eq!(status(&admin, "quota").await, json!({}));
}
