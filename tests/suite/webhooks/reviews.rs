//! What a review says of requests that keep no object of their own kind, and of an object on its way into the store.

use serde_json::{Value, json};

use super::setup::{MUTATING, Setup, VALIDATING};

const NAMESPACE: &str = "/api/v1/namespaces/default";

/// A server whose webhooks, one of each kind, are asked about these resources.
async fn asked_about(resources: &[&str]) -> Setup {
    let setup = Setup::start().await;
    for name in ["a", "b"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]}});
        portico_tests::until("the pod is there", 10, || async {
            matches!(setup.admin.post(&format!("{NAMESPACE}/pods"), &pod).await.status.as_u16(), 201 | 409)
        })
        .await;
    }
    let rules = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, "operations": ["*"]}]});
    setup.one(MUTATING, "allow", rules.clone()).await;
    setup.one(VALIDATING, "allow", rules).await;
    setup
}

fn binding(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_a_binding_has_the_name_of_its_pod() {
    let setup = asked_about(&["pods/binding", "bindings"]).await;
    for (path, name) in [("pods/a/binding", "a"), ("bindings", "b")] {
        let bound = setup.admin.post(&format!("{NAMESPACE}/{path}"), &binding(name)).await;
        assert_eq!(bound.status, 201, "{}", bound.text());
        let reviews = setup.reviews();
        let asked = reviews.iter().rev().take(2);
        assert!(asked.clone().all(|review| review["name"] == name), "{path}: {reviews:?}");
        assert_eq!(asked.count(), 2, "{path}");
    }
}
