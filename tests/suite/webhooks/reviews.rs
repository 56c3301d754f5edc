//! Content of reviews: of requests without a stored object of their kind, and of objects before they are stored.

use portico_tests::objects::CONFIG_MAPS;
use serde_json::{Value, json};

use super::setup::{MUTATING, Setup, VALIDATING};

const NAMESPACE: &str = "/api/v1/namespaces/default";

/// Starts a server with one webhook of each kind, for these resources.
async fn start_with_webhooks(resources: &[&str]) -> Setup {
    let setup = Setup::start().await;
    for name in ["a", "b"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]}});
        portico_tests::wait_until("the pod exists", || async {
            matches!(setup.admin.post(&format!("{NAMESPACE}/pods"), &pod).await.status.as_u16(), 201 | 409)
        })
        .await;
    }
    let rules = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, "operations": ["*"]}]});
    setup.configure_one(MUTATING, "allow", rules.clone()).await;
    setup.configure_one(VALIDATING, "allow", rules).await;
    setup
}

fn binding(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_a_binding_has_the_name_of_its_pod() {
    let setup = start_with_webhooks(&["pods/binding", "bindings"]).await;
    for (path, name) in [("pods/a/binding", "a"), ("bindings", "b")] {
        let bound = setup.admin.post(&format!("{NAMESPACE}/{path}"), &binding(name)).await;
        assert_eq!(bound.status, 201, "{}", bound.text());
        let reviews = setup.reviews();
        let recent = reviews.iter().rev().take(2);
        assert!(recent.clone().all(|review| review["name"] == name), "{path}: {reviews:?}");
        assert_eq!(recent.count(), 2, "{path}");
    }
}

/// Returns the content of a review of a POST that stores nothing, without metadata that the server owns.
fn review_content(review: &Value) -> Value {
    let mut object = review["object"].clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| !matches!(field.as_str(), "managedFields" | "uid" | "creationTimestamp"));
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_of_virtual_resources_have_a_zero_status() {
    let setup = start_with_webhooks(&[
        "serviceaccounts/token",
        "subjectaccessreviews",
        "selfsubjectrulesreviews",
        "selfsubjectreviews",
        "tokenreviews",
    ])
    .await;
    let (authorization, authentication) = ("authorization.k8s.io", "authentication.k8s.io");
    let access = json!({"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}});
    for (group, resource, kind, spec, status) in [
        (authorization, "subjectaccessreviews", "SubjectAccessReview", access, json!({"allowed": false})),
        (
            authorization,
            "selfsubjectrulesreviews",
            "SelfSubjectRulesReview",
            json!({"namespace": "default"}),
            json!({"incomplete": false, "nonResourceRules": null, "resourceRules": null}),
        ),
        (authentication, "tokenreviews", "TokenReview", json!({"token": "t"}), json!({"user": {}})),
        (authentication, "selfsubjectreviews", "SelfSubjectReview", Value::Null, json!({"userInfo": {}})),
    ] {
        let mut body = json!({"apiVersion": format!("{group}/v1"), "kind": kind});
        let mut expected =
            json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {}, "status": status});
        if !spec.is_null() {
            (body["spec"], expected["spec"]) = (spec.clone(), spec);
        }
        let created = setup.admin.post(&format!("/apis/{group}/v1/{resource}"), &body).await;
        assert_eq!(created.status, 201, "{}", created.text());
        let reviews = setup.reviews();
        for review in &reviews[reviews.len() - 2..] {
            assert_eq!(review_content(review), expected, "{kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_of_token_requests_are_defaulted() {
    let setup = start_with_webhooks(&["serviceaccounts/token"]).await;
    let path = format!("{NAMESPACE}/serviceaccounts/default/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let issued = setup.admin.post(&path, &request).await;
    assert_eq!(issued.status, 201, "{}", issued.text());
    let audiences = issued.json()["spec"]["audiences"].clone();
    let reviews = setup.reviews();
    let expected = |name: Value, audiences: Value| {
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": name,
            "spec": {"audiences": audiences, "boundObjectRef": null, "expirationSeconds": 3600},
            "status": {"token": "", "expirationTimestamp": null}})
    };
    assert_eq!(review_content(&reviews[0]), expected(json!({"namespace": "default"}), Value::Null));
    assert_eq!(
        review_content(&reviews[1]),
        expected(json!({"namespace": "default", "name": "default"}), audiences)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_actions_reach_only_mutating_webhooks() {
    let setup =
        start_with_webhooks(&["pods/binding", "pods/eviction", "serviceaccounts/token", "tokenreviews"])
            .await;
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}});
    let authentication = "authentication.k8s.io/v1";
    let token =
        json!({"apiVersion": authentication, "kind": "TokenRequest", "spec": {"expirationSeconds": 1}});
    let review = json!({"apiVersion": authentication, "kind": "TokenReview", "spec": {}});
    for (path, body, code) in [
        (format!("{NAMESPACE}/pods/a/binding"), binding("other"), 400),
        (format!("{NAMESPACE}/pods/a/eviction"), eviction, 400),
        (format!("{NAMESPACE}/serviceaccounts/default/token"), token, 422),
        (format!("/apis/{authentication}/tokenreviews"), review, 400),
    ] {
        let before = setup.reviews().len();
        let refused = setup.admin.post(&path, &body).await;
        assert_eq!(refused.status, code, "{path}: {}", refused.text());
        assert_eq!(setup.reviews().len(), before + 1, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_of_updates_have_the_new_generation() {
    let setup = start_with_webhooks(&["pods", "pods/ephemeralcontainers", "deployments", "namespaces"]).await;
    let generations = |setup: &Setup| -> Vec<Value> {
        let generation_of = |review: Value| review["object"]["metadata"]["generation"].clone();
        let mut reviews = setup.reviews();
        reviews.drain(..reviews.len() - 2);
        reviews.into_iter().map(generation_of).collect()
    };
    let pod = format!("{NAMESPACE}/pods/a");
    let mut now = setup.admin.get(&pod).await.json();
    now["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
    let added = setup.admin.put(&format!("{pod}/ephemeralcontainers"), &now).await;
    assert_eq!(added.status, 200, "{}", added.text());
    assert_eq!(generations(&setup), [1, 2], "the generation is increased after mutation");
    let patch = json!({"spec": {"activeDeadlineSeconds": 100}});
    let patched = setup.admin.merge(&pod, &patch).await.json();
    assert_eq!(
        (generations(&setup), &patched["metadata"]["generation"]),
        (vec![json!(2), json!(3)], &json!(3))
    );
    let labelled = setup.admin.merge(&pod, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled.status, 200, "{}", labelled.text());
    assert_eq!(generations(&setup), [3, 3], "a label does not change the generation");

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    setup.admin.post("/api/v1/namespaces", &namespace).await;
    let last = setup.reviews().into_iter().rfind(|review| review["resource"]["resource"] == "namespaces");
    let labels = &last.unwrap()["object"]["metadata"]["labels"];
    assert_eq!(labels, &json!({"kubernetes.io/metadata.name": "n"}), "last touches are made");
}

/// CVE-2021-25735: a webhook that relies on the old object gets the stored one.
#[tokio::test(flavor = "multi_thread")]
async fn reviews_of_node_updates_have_the_stored_old_object() {
    let setup = start_with_webhooks(&["nodes", "nodes/status"]).await;
    let node = json!({"metadata": {"name": "n", "labels": {"zone": "a"}}});
    assert_eq!(setup.admin.post("/api/v1/nodes", &node).await.status, 201);
    let mut sent = setup.admin.get("/api/v1/nodes/n").await.json();
    sent["metadata"]["labels"] = json!({"zone": "b"});
    let replaced = setup.admin.put("/api/v1/nodes/n", &sent).await;
    assert_eq!(replaced.status, 200, "{}", replaced.text());
    let status = json!({"metadata": {"labels": {"zone": "c"}}, "status": {"phase": "Running"}});
    setup.admin.merge("/api/v1/nodes/n/status", &status).await;
    let zones: Vec<Value> = setup
        .reviews()
        .into_iter()
        .filter(|review| review["operation"] == "UPDATE")
        .map(|review| review["oldObject"]["metadata"]["labels"]["zone"].clone())
        .collect();
    assert_eq!(zones, ["a", "a", "b", "b"], "mutating and validating, of the node and of its status");
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_sees_the_generated_name() {
    let setup = Setup::start().await;
    setup.configure_one(MUTATING, "allow", json!({})).await;
    let named =
        json!({"matchConditions": [{"name": "named", "expression": "request.name.startsWith('g-')"}]});
    setup.configure_one(VALIDATING, "allow", named).await;
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}});
    let created = setup.admin.post(CONFIG_MAPS, &generated).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let reviews = setup.reviews();
    assert_eq!(reviews.len(), 2, "{reviews:?}");
    assert_eq!(reviews[0]["name"], Value::Null);
    assert_eq!(reviews[1]["name"], created.json()["metadata"]["name"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn managers_that_a_webhook_makes_invalid_are_reset_with_a_warning() {
    let setup = Setup::start().await;
    setup.configure_one(MUTATING, "manage/Replace", json!({})).await;
    let created = setup.create("m").await;
    assert_eq!(created.status, 201, "{}", created.text());
    let managers = created.json()["metadata"]["managedFields"].clone();
    assert_eq!(managers[0]["fieldsV1"], json!({"f:data": {".": {}, "f:k": {}}}), "{managers}");
    let warning = ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: operation must be `Apply` or `Update`";
    assert_eq!(created.header("warning"), format!("299 - \"{warning}\""));
}
