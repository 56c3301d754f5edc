//! StorageVersions: each server publishes how it stores each resource, behind gates, and delays writes until it has done so.

use portico_tests::{Launch, Portico};
use serde_json::json;

const GATES: [&str; 2] = ["--feature-gates", "StorageVersionAPI=true,APIServerIdentity=true"];
const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const HOOK: &str = "/readyz/poststarthook/built-in-resources-storage-version-updater";

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_is_published_before_the_server_is_ready() {
    let serve = ["--runtime-config", "internal.apiserver.k8s.io/v1alpha1=true"];
    let portico = Launch::new().args(&GATES).args(&serve).start().await;
    let admin = portico.admin();
    assert_eq!(admin.get(HOOK).await.status, 200);
    let scalers = format!("{VERSIONS}/autoscaling.horizontalpodautoscalers");
    let reported = admin.get(&scalers).await.json();
    assert_eq!(reported["status"]["commonEncodingVersion"], "autoscaling/v2");
    let server = &reported["status"]["storageVersions"][0];
    assert_eq!(server["servedVersions"], json!(["autoscaling/v2", "autoscaling/v1"]));
    let leases = admin.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").await.json();
    let lease = leases["items"][0]["metadata"]["name"].clone();
    assert_eq!(server["apiServerID"], lease);
    let odd = json!({"metadata": {"name": "nothing"}, "spec": {}});
    let refused = admin.post(VERSIONS, &odd).await.status_body(422, "Invalid");
    assert!(refused["message"].as_str().unwrap().contains("in the form of <group>.<resource>"));
    let created = admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "made"}})).await;
    assert_eq!(created.status, 201, "{}", created.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_versions_need_the_feature_gates() {
    let portico = Portico::start().await;
    assert_eq!(portico.admin().get(HOOK).await.status, 404);
}
