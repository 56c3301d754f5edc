//! Disruption budgets without kube-controller-manager: evictions use the status that the server maintains.

use portico_tests::http::Http;
use portico_tests::objects::PODS;
use portico_tests::{Portico, wait_until};
use serde_json::{Value, json};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn ready_pod(admin: &Http, name: &str) {
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
    });
    wait_until("the pod is created", async || admin.post(PODS, &pod).await.status == 201).await;
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(admin.merge(&format!("{PODS}/{name}/status"), &ready).await.status, 200);
}

async fn status_of(admin: &Http, budget: &str) -> Value {
    admin.get(&format!("{BUDGETS}/{budget}")).await.json()["status"].clone()
}

async fn evict(admin: &Http, pod: &str) -> (u16, String) {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod},
        "deleteOptions": {"gracePeriodSeconds": 0}});
    let answer = admin.post(&format!("{PODS}/{pod}/eviction"), &eviction).await;
    (answer.status.as_u16(), answer.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn evictions_are_limited_by_the_budget() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for pod in ["one", "two", "three"] {
        ready_pod(&admin, pod).await;
    }
    let budget = json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}});
    assert_eq!(admin.post(BUDGETS, &budget).await.status, 201);
    wait_until("the budget allows one disruption", async || {
        status_of(&admin, "b").await["disruptionsAllowed"] == 1
    })
    .await;
    let (code, text) = evict(&admin, "one").await;
    assert_eq!(code, 201, "{text}");
    wait_until("the budget's status reflects the eviction", async || {
        let status = status_of(&admin, "b").await;
        status["expectedPods"] == 2 && status["disruptedPods"].is_null()
    })
    .await;
    let (code, text) = evict(&admin, "two").await;
    assert_eq!(code, 429, "{text}");
    assert!(text.contains("The disruption budget b needs 2 healthy pods and has 2 currently"), "{text}");
    ready_pod(&admin, "four").await;
    wait_until("the budget allows another eviction", async || evict(&admin, "two").await.0 == 201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unselected_pods_are_not_counted() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    ready_pod(&admin, "one").await;
    let budget = json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": 0, "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}});
    admin.post(BUDGETS, &budget).await;
    wait_until("the budget counts the pod", async || status_of(&admin, "b").await["currentHealthy"] == 1)
        .await;
    admin.merge(&format!("{PODS}/one"), &json!({"metadata": {"labels": {"app": null}}})).await;
    wait_until("the budget no longer counts the pod", async || {
        status_of(&admin, "b").await["expectedPods"] == 0
    })
    .await;
}
