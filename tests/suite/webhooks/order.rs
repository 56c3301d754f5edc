//! Checks before a webhook may change an object, and checks of its result.

use portico_tests::objects::CONFIG_MAPS;
use serde_json::{Value, json};

use super::setup::{MUTATING, Setup, VALIDATING};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Returns a client of a user who may write roles, and has no other permissions.
async fn writer_of_roles(setup: &Setup) -> portico_tests::http::Http {
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "get", "update"]}]);
    let role = json!({"metadata": {"name": "writer"}, "rules": rules});
    let binding = json!({"metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    for (resource, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let created = setup.admin.post(&format!("{RBAC}/{resource}"), &object).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    setup.admin.as_user("alice")
}

fn role_rules() -> Value {
    json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["roles"], "operations": ["*"]}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_cannot_escalate_permissions() {
    let setup = Setup::start().await;
    let alice = writer_of_roles(&setup).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    let created = alice.post(&roles, &role).await;
    assert_eq!(created.status, 201, "{}", created.text());
    setup.configure_one(MUTATING, "grant", role_rules()).await;
    for answer in [
        alice.post(&roles, &json!({"metadata": {"name": "s"}, "rules": []})).await,
        alice.put(&format!("{roles}/r"), &created.json()).await,
    ] {
        let refused = answer.status_body(403, "Forbidden");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("attempting to grant RBAC permissions not currently held"), "{message}");
    }
    let alice_reviews =
        setup.reviews().into_iter().filter(|review| review["userInfo"]["username"] == "alice");
    assert_eq!(alice_reviews.count(), 2, "the webhook is called first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_update_is_refused_after_webhooks() {
    let setup = Setup::start().await;
    let stale = setup.create("m").await.json();
    let path = format!("{CONFIG_MAPS}/m");
    assert_eq!(setup.admin.merge(&path, &json!({"data": {"a": "b"}})).await.status, 200);
    setup.configure_one(VALIDATING, "deny", json!({})).await;
    setup.admin.put(&path, &stale).await.status_body(409, "Conflict");
    // Controllers write ConfigMaps as well.
    assert!(
        !setup.reviews().iter().any(|review| review["name"] == "m"),
        "an invalid object is not sent to a webhook"
    );
    setup.configure_one(MUTATING, "deny", json!({})).await;
    setup.admin.put(&path, &stale).await.status_body(418, "Teapot");
    let mut strange = stale.clone();
    strange["metadata"]["uid"] = json!("another");
    strange["metadata"]["resourceVersion"] = json!("");
    setup.admin.put(&path, &strange).await.status_body(409, "Conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overhead_of_a_pod_cannot_be_changed_by_webhooks() {
    let setup = Setup::start().await;
    portico_tests::wait_until("pods have an account", || async {
        setup.admin.get("/api/v1/namespaces/default/serviceaccounts/default").await.status == 200
    })
    .await;
    let class = json!({"metadata": {"name": "c"}, "handler": "h", "overhead": {"podFixed": {"cpu": "250m"}}});
    setup.admin.post("/apis/node.k8s.io/v1/runtimeclasses", &class).await;
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]);
    // The first webhook changes the pod only in the second round, after which plugins do not change it.
    let again = json!({"rules": rules, "reinvocationPolicy": "IfNeeded"});
    let hooks = vec![
        setup.webhook("overhead", "overhead-of/x", &again),
        setup.webhook("label", "label/x", &json!({"rules": rules})),
    ];
    setup.configure(MUTATING, "hooks", hooks).await;
    for (class, why) in [
        (json!("c"), "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
        (Value::Null, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
    ] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"runtimeClassName": class, "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]}});
        let refused = setup.admin.post("/api/v1/namespaces/default/pods", &pod).await;
        let status = refused.status_body(403, "Forbidden");
        assert!(status["message"].as_str().unwrap().ends_with(why), "{status}");
    }
}
