//! Deleted claims and volumes are removed once they are unused.

use portico_tests::http::Http;
use portico_tests::{Portico, wait_until};
use serde_json::{Value, json};

const CORE: &str = "/api/v1/namespaces";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn claims(namespace: &str) -> String {
    format!("{CORE}/{namespace}/persistentvolumeclaims")
}

async fn create(admin: &Http, path: &str, object: &Value) {
    let created = admin.post(path, object).await;
    assert_eq!(created.status, 201, "{}", created.text());
}

async fn claim(admin: &Http, namespace: &str, name: &str) {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    create(admin, &claims(namespace), &json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn volume(admin: &Http, name: &str) {
    let spec =
        json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/v"}});
    create(admin, VOLUMES, &json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// Deletes objects one after the other; the last one must be removed.
async fn delete(admin: &Http, paths: &[String]) {
    for path in paths {
        let deleted = admin.delete(path).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
    }
    let last = paths.last().unwrap();
    wait_until("the last object is deleted", async || admin.get(last).await.status == 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_a_claim_can_be_deleted() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    create(&admin, CORE, &json!({"metadata": {"name": "shop"}})).await;
    claim(&admin, "shop", "data").await;
    let stored = admin.get(&format!("{}/data", claims("shop"))).await.json();
    assert_eq!(stored["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    delete(&admin, &[format!("{CORE}/shop")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_stays_as_long_as_a_pod_uses_it() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for name in ["used", "unused"] {
        claim(&admin, "default", name).await;
    }
    let (pods, path) = (format!("{CORE}/default/pods"), |name| format!("{}/{name}", claims("default")));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]}});
    wait_until("the pod is created", async || admin.post(&pods, &pod).await.status == 201).await;
    // Claims are checked in the order of their deletion.
    delete(&admin, &["used", "unused"].map(path)).await;
    assert_eq!(admin.get(&path("used")).await.status, 200, "the pod uses the claim");
    delete(&admin, &[format!("{pods}/p?gracePeriodSeconds=0")]).await;
    wait_until("the claim in use is deleted", async || admin.get(&path("used")).await.status == 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_stays_as_long_as_it_is_bound() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for name in ["bound", "free"] {
        volume(&admin, name).await;
    }
    let path = |name| format!("{VOLUMES}/{name}");
    let phase = async |phase: &str| {
        let written =
            admin.merge(&format!("{VOLUMES}/bound/status"), &json!({"status": {"phase": phase}})).await;
        assert_eq!(written.status, 200, "{}", written.text());
    };
    phase("Bound").await;
    delete(&admin, &["bound", "free"].map(path)).await;
    assert_eq!(admin.get(&path("bound")).await.status, 200);
    phase("Released").await;
    wait_until("the released volume is deleted", async || admin.get(&path("bound")).await.status == 404)
        .await;
}
