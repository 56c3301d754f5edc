//! Quotas that count writes, and writes that settings or namespaces forbid.

use futures::future::join_all;
use portico_store::Resource;

use crate::harness::{Harness, JSON, MERGE};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates a quota with these limits and this usage.
async fn quota(harness: &Harness, spec: &str, hard: &str, used: &str) {
    let body =
        format!(r#"{{"kind":"ResourceQuota","apiVersion":"v1","metadata":{{"name":"q"}},"spec":{spec}}}"#);
    assert_eq!(harness.post(QUOTAS, &body).await.code, 201);
    let status = format!(r#"{{"status":{{"hard":{hard},"used":{used}}}}}"#);
    let patched = harness.patch(&format!("{QUOTAS}/q/status"), MERGE, &status).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
}

fn map(name: &str) -> String {
    format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}"}}}}"#)
}

async fn used(harness: &Harness, resource: &str) -> String {
    let quota = harness.get(&format!("{QUOTAS}/q")).await.object();
    quota.at(&["status", "used", resource]).str().to_owned()
}

#[tokio::test]
async fn concurrent_creates_never_exceed_a_quota() {
    let harness = Harness::open().await;
    let hard = r#"{"configmaps":"5"}"#;
    quota(&harness, &format!(r#"{{"hard":{hard}}}"#), hard, r#"{"configmaps":"0"}"#).await;
    let names: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
    let codes = join_all(names.iter().map(|name| async { harness.post(MAPS, &map(name)).await.code })).await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 5, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 7, "{codes:?}");
    assert_eq!(used(&harness, "configmaps").await, "5");
    assert_eq!(harness.get(MAPS).await.names().len(), 5);
}

#[tokio::test]
async fn a_write_is_refused_while_quotas_are_not_in_memory() {
    let harness = Harness::open().await;
    let hard = r#"{"configmaps":"0"}"#;
    quota(&harness, &format!(r#"{{"hard":{hard}}}"#), hard, r#"{"configmaps":"0"}"#).await;
    assert_eq!(harness.post(MAPS, &map("m")).await.code, 403);
    harness.store.uncache(Resource::new("", "resourcequotas"));
    let reply = harness.post(MAPS, &map("m")).await;
    assert_eq!(reply.code, 503, "{reply:?}");
    assert!(harness.get(MAPS).await.names().is_empty());
}

#[tokio::test]
async fn concurrent_writes_succeed_even_if_many_quotas_count_them() {
    /// Number of quotas whose updates, with the operations of a few writes, exceed one transaction.
    const QUOTAS_OF_ALL: usize = 990;
    let harness = Harness::open().await;
    let name = |n: usize| format!("q{n}");
    let make = async |n: usize| {
        let spec = r#"{"hard":{"configmaps":"100"}}"#;
        let body = format!(
            r#"{{"kind":"ResourceQuota","apiVersion":"v1","metadata":{{"name":"{}"}},"spec":{spec}}}"#,
            name(n)
        );
        assert_eq!(harness.post(QUOTAS, &body).await.code, 201);
        let status = r#"{"status":{"hard":{"configmaps":"100"},"used":{"configmaps":"0"}}}"#;
        assert_eq!(harness.patch(&format!("{QUOTAS}/{}/status", name(n)), MERGE, status).await.code, 200);
    };
    join_all((0..QUOTAS_OF_ALL).map(make)).await;
    let names: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
    let answers = join_all(names.iter().map(|name| async { harness.post(MAPS, &map(name)).await })).await;
    for answer in answers {
        assert_eq!(answer.code, 201, "{}", answer.text);
    }
    for n in [0, QUOTAS_OF_ALL - 1] {
        let quota = harness.get(&format!("{QUOTAS}/{}", name(n))).await.object();
        assert_eq!(quota.at(&["status", "used", "configmaps"]).str(), "12");
    }
}

#[tokio::test]
async fn refused_writes_and_dry_runs_are_not_counted() {
    let harness = Harness::open().await;
    let hard = r#"{"count/configmaps":"2"}"#;
    quota(&harness, &format!(r#"{{"hard":{hard}}}"#), hard, r#"{"count/configmaps":"0"}"#).await;
    assert_eq!(harness.post(&format!("{MAPS}?dryRun=All"), &map("a")).await.code, 201);
    assert_eq!(used(&harness, "count/configmaps").await, "0");
    assert_eq!(harness.post(MAPS, &map("a")).await.code, 201);
    assert_eq!(harness.post(MAPS, &map("a")).await.code, 409);
    assert_eq!(used(&harness, "count/configmaps").await, "1");
    let changed = harness.patch(&format!("{MAPS}/a"), MERGE, r#"{"data":{"k":"v"}}"#).await;
    assert_eq!((changed.code, used(&harness, "count/configmaps").await.as_str()), (200, "1"));
    assert_eq!(harness.post(MAPS, &map("b")).await.code, 201);
    let dry = harness.request("POST", &format!("{MAPS}?dryRun=All"), JSON, JSON, &map("c")).await;
    assert_eq!(
        dry.at("message"),
        "configmaps \"c\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, \
         limited: count/configmaps=2"
    );
}

#[tokio::test]
async fn an_update_is_charged_the_difference() {
    let harness = Harness::open().await;
    let hard = r#"{"services.nodeports":"1","services":"3"}"#;
    quota(&harness, &format!(r#"{{"hard":{hard}}}"#), hard, r#"{"services.nodeports":"0","services":"0"}"#)
        .await;
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str| {
        format!(
            r#"{{"kind":"Service","apiVersion":"v1","metadata":{{"name":"{name}"}},"spec":{{"ports":[{{"port":80}}]}}}}"#
        )
    };
    for name in ["a", "b"] {
        assert_eq!(harness.post(services, &service(name)).await.code, 201);
    }
    let node_port = r#"{"spec":{"type":"NodePort"}}"#;
    assert_eq!(harness.patch(&format!("{services}/a"), MERGE, node_port).await.code, 200);
    assert_eq!(used(&harness, "services.nodeports").await, "1");
    let refused = harness.patch(&format!("{services}/b"), MERGE, node_port).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert_eq!(used(&harness, "services").await, "2");
}

#[tokio::test]
async fn scopes_select_the_objects_of_a_quota() {
    let harness = Harness::open().await;
    let hard = r#"{"pods":"0"}"#;
    let spec = format!(
        r#"{{"hard":{hard},"scopeSelector":{{"matchExpressions":[{{"scopeName":"PriorityClass","operator":"In","values":["high"]}}]}}}}"#
    );
    let class = r#"{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{"name":"high"},"value":5}"#;
    assert_eq!(harness.post("/apis/scheduling.k8s.io/v1/priorityclasses", class).await.code, 201);
    let account = r#"{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"}}"#;
    assert_eq!(harness.post("/api/v1/namespaces/default/serviceaccounts", account).await.code, 201);
    quota(&harness, &spec, hard, hard).await;
    let pod = |name: &str, more: &str| {
        format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}"}},"spec":{{{more}"containers":[{{"name":"c","image":"i"}}]}}}}"#
        )
    };
    assert_eq!(harness.post(PODS, &pod("low", "")).await.code, 201);
    let high = harness.post(PODS, &pod("high", r#""priorityClassName":"high","#)).await;
    assert_eq!(
        high.at("message"),
        "pods \"high\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    );
}

#[tokio::test]
async fn a_bound_pod_gets_the_zone_label_of_its_node() {
    let harness = Harness::open().await;
    let account = r#"{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"}}"#;
    assert_eq!(harness.post("/api/v1/namespaces/default/serviceaccounts", account).await.code, 201);
    let node = r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","labels":{"topology.kubernetes.io/zone":"z","other":"o"}}}"#;
    assert_eq!(harness.post("/api/v1/nodes", node).await.code, 201);
    let pod = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    assert_eq!(harness.post(PODS, pod).await.code, 201);
    let binding =
        r#"{"kind":"Binding","apiVersion":"v1","metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}"#;
    let bound = harness.post(&format!("{PODS}/p/binding"), binding).await;
    assert_eq!(bound.code, 201, "{}", bound.text);
    let pod = harness.get(&format!("{PODS}/p")).await.object();
    assert_eq!(pod.label("topology.kubernetes.io/zone"), Some("z"));
    assert_eq!(pod.label("other"), None);
}

#[tokio::test]
async fn privileged_containers_require_the_setting() {
    let harness = Harness::open().await;
    let template = r#"{"kind":"PodTemplate","apiVersion":"v1","metadata":{"name":"t"},"template":{"metadata":{},"spec":{
        "initContainers":[{"name":"a","image":"i","securityContext":{"privileged":true}}],
        "containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}}"#;
    let refused = harness.post("/api/v1/namespaces/default/podtemplates", template).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    let message = refused.at("message");
    for list in ["initContainers", "containers"] {
        let error = format!(
            "template.spec.{list}[0].securityContext.privileged: Forbidden: disallowed by cluster policy"
        );
        assert!(message.contains(&error), "{message}");
    }
}
