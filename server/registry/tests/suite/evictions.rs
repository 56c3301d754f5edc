//! Evictions: disruption budgets, and the effect on the pod.

use crate::harness::{Harness, JSON, MERGE, Reply, object};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// Creates a pod on a node in this phase, without the condition `Ready`.
async fn pod(harness: &Harness, name: &str, phase: &str) {
    harness
        .post("/api/v1/namespaces/default/serviceaccounts", &object("ServiceAccount", "default", ""))
        .await;
    let spec = r#"{"nodeName":"n","containers":[{"name":"c","image":"i"}]}"#;
    let body = format!(r#"{{"metadata":{{"name":"{name}","labels":{{"app":"web"}}}},"spec":{spec}}}"#);
    assert_eq!(harness.post(PODS, &body).await.code, 201);
    let status = format!(r#"{{"status":{{"phase":"{phase}"}}}}"#);
    assert_eq!(harness.patch(&format!("{PODS}/{name}/status"), MERGE, &status).await.code, 200);
}

async fn budget(harness: &Harness, policy: &str) {
    let spec = format!(r#"{{"minAvailable":1,"selector":{{"matchLabels":{{"app":"web"}}}}{policy}}}"#);
    assert_eq!(
        harness.post(BUDGETS, &format!(r#"{{"metadata":{{"name":"b"}},"spec":{spec}}}"#)).await.code,
        201
    );
}

async fn evict(harness: &Harness, name: &str, options: &str) -> Reply {
    let body = format!(
        r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{name}"}},"deleteOptions":{options}}}"#
    );
    harness.request("POST", &format!("{PODS}/{name}/eviction"), JSON, JSON, &body).await
}

async fn is_being_evicted(harness: &Harness, name: &str) -> bool {
    let pod = harness.get(&format!("{PODS}/{name}")).await;
    pod.text.contains("deletionTimestamp") && pod.text.contains("EvictionByEvictionAPI")
}

#[tokio::test]
async fn an_unready_pod_is_evicted_if_the_policy_is_always_allow() {
    let harness = Harness::open().await;
    pod(&harness, "a", "Running").await;
    budget(&harness, r#","unhealthyPodEvictionPolicy":"AlwaysAllow""#).await;
    let evicted = evict(&harness, "a", "{}").await;
    assert_eq!(evicted.code, 201, "{evicted:?}");
    assert!(is_being_evicted(&harness, "a").await);
}

#[tokio::test]
async fn an_unready_pod_is_protected_by_the_default_policy() {
    let harness = Harness::open().await;
    pod(&harness, "a", "Running").await;
    budget(&harness, "").await;
    assert_eq!(evict(&harness, "a", "{}").await.code, 429);
    assert!(!is_being_evicted(&harness, "a").await);
}

#[tokio::test]
async fn a_pending_or_finished_pod_is_evicted_without_its_budget_if_preconditions_match() {
    let harness = Harness::open().await;
    for phase in ["Pending", "Succeeded"] {
        let name = phase.to_lowercase();
        pod(&harness, &name, phase).await;
        assert_eq!(evict(&harness, &name, r#"{"preconditions":{"resourceVersion":"1"}}"#).await.code, 409);
        assert_eq!(evict(&harness, &name, r#"{"dryRun":["All"]}"#).await.code, 201);
        assert!(!is_being_evicted(&harness, &name).await);
        assert_eq!(evict(&harness, &name, "{}").await.code, 201);
    }
    assert!(is_being_evicted(&harness, "pending").await);
}
