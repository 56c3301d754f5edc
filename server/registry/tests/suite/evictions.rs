//! Evictions through the door: who is asked, and what becomes of the pod.

use crate::harness::{Door, JSON, MERGE, Reply, object};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A pod on a node, in this phase; nothing says that it is ready.
async fn pod(door: &Door, name: &str, phase: &str) {
    door.post("/api/v1/namespaces/default/serviceaccounts", &object("ServiceAccount", "default", "")).await;
    let spec = r#"{"nodeName":"n","containers":[{"name":"c","image":"i"}]}"#;
    let body = format!(r#"{{"metadata":{{"name":"{name}","labels":{{"app":"web"}}}},"spec":{spec}}}"#);
    assert_eq!(door.post(PODS, &body).await.code, 201);
    let status = format!(r#"{{"status":{{"phase":"{phase}"}}}}"#);
    assert_eq!(door.patch(&format!("{PODS}/{name}/status"), MERGE, &status).await.code, 200);
}

async fn budget(door: &Door, policy: &str) {
    let spec = format!(r#"{{"minAvailable":1,"selector":{{"matchLabels":{{"app":"web"}}}}{policy}}}"#);
    assert_eq!(
        door.post(BUDGETS, &format!(r#"{{"metadata":{{"name":"b"}},"spec":{spec}}}"#)).await.code,
        201
    );
}

async fn evict(door: &Door, name: &str, options: &str) -> Reply {
    let body = format!(
        r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{name}"}},"deleteOptions":{options}}}"#
    );
    door.ask("POST", &format!("{PODS}/{name}/eviction"), JSON, JSON, &body).await
}

async fn goes(door: &Door, name: &str) -> bool {
    let pod = door.get(&format!("{PODS}/{name}")).await;
    pod.text.contains("deletionTimestamp") && pod.text.contains("EvictionByEvictionAPI")
}

#[tokio::test]
async fn a_pod_that_is_not_ready_goes_when_its_budget_always_allows_that() {
    let door = Door::open().await;
    pod(&door, "a", "Running").await;
    budget(&door, r#","unhealthyPodEvictionPolicy":"AlwaysAllow""#).await;
    let evicted = evict(&door, "a", "{}").await;
    assert_eq!(evicted.code, 201, "{evicted:?}");
    assert!(goes(&door, "a").await);
}

#[tokio::test]
async fn a_pod_that_is_not_ready_is_guarded_otherwise() {
    let door = Door::open().await;
    pod(&door, "a", "Running").await;
    budget(&door, "").await;
    assert_eq!(evict(&door, "a", "{}").await.code, 429);
    assert!(!goes(&door, "a").await);
}

#[tokio::test]
async fn a_pod_that_nobody_counts_on_goes_unasked_but_only_as_the_caller_knows_it() {
    let door = Door::open().await;
    for phase in ["Pending", "Succeeded"] {
        let name = phase.to_lowercase();
        pod(&door, &name, phase).await;
        assert_eq!(evict(&door, &name, r#"{"preconditions":{"resourceVersion":"1"}}"#).await.code, 409);
        assert_eq!(evict(&door, &name, r#"{"dryRun":["All"]}"#).await.code, 201);
        assert!(!goes(&door, &name).await);
        assert_eq!(evict(&door, &name, "{}").await.code, 201);
    }
    assert!(goes(&door, "pending").await);
}
