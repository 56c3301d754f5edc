//! Objects that bypassed validation or admission.

use portico_tests::{Launch, http::Http};
use portico_tests::{Portico, pki};
use serde_json::{Value, json};

const NAMESPACE: &str = "/api/v1/namespaces/default";

/// CVE-2023-2728, CVE-2024-3177: Secrets that the account of a pod may not mount, used by ephemeral containers and by
/// environment variables.
#[tokio::test(flavor = "multi_thread")]
async fn containers_get_only_secrets_of_their_account() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let account = json!({"metadata": {"name": "strict", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}});
    assert_eq!(admin.post(&format!("{NAMESPACE}/serviceaccounts"), &account).await.status, 201);
    let pod = |name: &str, containers: Value, init: Value| {
        json!({"metadata": {"name": name}, "spec": {"serviceAccountName": "strict", "automountServiceAccountToken": false,
            "containers": containers, "initContainers": init}})
    };
    let plain = json!({"name": "c", "image": "i"});
    let from = json!({"name": "v", "image": "i", "envFrom": [{"secretRef": {"name": "s"}}]});
    let key = json!({"name": "k", "image": "i",
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]});
    let pods = format!("{NAMESPACE}/pods");
    for (at, asking) in [&from, &key].into_iter().enumerate() {
        for (containers, init) in [(json!([asking]), json!([])), (json!([plain]), json!([asking]))] {
            let answer = admin.post(&pods, &pod(&format!("p{at}"), containers, init)).await;
            assert_eq!(answer.status, 403, "{}", answer.text());
        }
    }
    assert_eq!(admin.post(&pods, &pod("p", json!([plain]), json!([]))).await.status, 201);
    for asking in [&from, &key] {
        let mut late = asking.clone();
        late["terminationMessagePolicy"] = json!("File");
        let patch = json!({"spec": {"ephemeralContainers": [late]}});
        let path = format!("{pods}/p/ephemeralcontainers");
        let patch = patch.to_string();
        let answer =
            admin.request(http::Method::PATCH, &path, "application/strategic-merge-patch+json", patch).await;
        assert!(
            !answer.status.is_success() && answer.text().contains("does not reference that secret"),
            "{}",
            answer.text()
        );
    }
}

async fn restricted() -> (Portico, Http) {
    let (launch, folder) = Launch::new().prepare_folder();
    let authority = pki::Authority::new("clients");
    let ca = folder.join("clients.crt");
    std::fs::write(&ca, &authority.pem).unwrap();
    let flags = ["--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction"];
    let portico = launch.args(&["--client-ca-file", ca.to_str().unwrap()]).args(&flags).start().await;
    let kubelet = portico.with_certificate(&authority.client("system:node:n1", &["system:nodes"]));
    (portico, kubelet)
}

/// CVE-2025-5187: a node that sets its own owner reference is deleted with that owner, and can register
/// with other taints and labels.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_gives_itself_no_owner() {
    let (portico, kubelet) = restricted().await;
    let created = kubelet.post("/api/v1/nodes", &json!({"metadata": {"name": "n1"}})).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}]);
    let patch = json!({"metadata": {"ownerReferences": owner}});
    for path in ["/api/v1/nodes/n1", "/api/v1/nodes/n1/status"] {
        let answer = kubelet.merge(path, &patch).await;
        let stored = portico.admin().get("/api/v1/nodes/n1").await.json();
        assert_eq!(stored["metadata"]["ownerReferences"], Value::Null, "{path}: {}", answer.text());
    }
    let answer = kubelet.merge("/api/v1/nodes/n1", &patch).await;
    answer.status_body(403, "Forbidden");
}

/// CVE-2025-4563: a node that declares which resource claims its pods use.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_makes_no_pod_that_claims_devices() {
    let (portico, kubelet) = restricted().await;
    assert_eq!(kubelet.post("/api/v1/nodes", &json!({"metadata": {"name": "n1"}})).await.status, 201);
    let uid = portico.admin().get("/api/v1/nodes/n1").await.json()["metadata"]["uid"].clone();
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": true}]);
    let mirror = |name: &str| {
        json!({"metadata": {"name": name, "ownerReferences": owner,
                "annotations": {"kubernetes.io/config.mirror": "m"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    };
    let pods = format!("{NAMESPACE}/pods");
    let created = kubelet.post(&pods, &mirror("plain")).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let claims = json!([{"name": "c", "resourceClaimName": "theirs"}]);
    let mut pod = mirror("claims");
    pod["spec"]["resourceClaims"] = claims.clone();
    kubelet.post(&pods, &pod).await.status_body(403, "Forbidden");
    let mut pod = mirror("status");
    pod["status"]["resourceClaimStatuses"] = claims.clone();
    kubelet.post(&pods, &pod).await;
    let stored = portico.admin().get(&format!("{pods}/status")).await.json();
    assert_eq!(stored["status"]["resourceClaimStatuses"], Value::Null);
    let patch = json!({"status": {"resourceClaimStatuses": claims}});
    let refused = kubelet.merge(&format!("{pods}/plain/status"), &patch).await;
    refused.status_body(403, "Forbidden");
}
