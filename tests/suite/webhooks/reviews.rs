//! What a review says of requests that keep no object of their own kind, and of an object on its way into the store.

use portico_tests::objects::CONFIG_MAPS;
use serde_json::{Value, json};

use super::setup::{MUTATING, Setup, VALIDATING};

const NAMESPACE: &str = "/api/v1/namespaces/default";

/// A server whose webhooks, one of each kind, are asked about these resources.
async fn asked_about(resources: &[&str]) -> Setup {
    let setup = Setup::start().await;
    for name in ["a", "b"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]}});
        portico_tests::until("the pod is there", || async {
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

/// What a webhook is shown of a POST that keeps nothing, with what it owns left out.
fn shown(review: &Value) -> Value {
    let mut object = review["object"].clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| !matches!(field.as_str(), "managedFields" | "uid" | "creationTimestamp"));
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_what_keeps_no_object_has_the_zero_status_that_clients_decode() {
    let setup = asked_about(&[
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
        let made = setup.admin.post(&format!("/apis/{group}/v1/{resource}"), &body).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let reviews = setup.reviews();
        for review in &reviews[reviews.len() - 2..] {
            assert_eq!(shown(review), expected, "{kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_a_token_request_has_its_defaults_and_then_what_its_account_says() {
    let setup = asked_about(&["serviceaccounts/token"]).await;
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
    assert_eq!(shown(&reviews[0]), expected(json!({"namespace": "default"}), Value::Null));
    assert_eq!(shown(&reviews[1]), expected(json!({"namespace": "default", "name": "default"}), audiences));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_action_refuses_is_shown_to_webhooks_that_may_change_it_alone() {
    let setup =
        asked_about(&["pods/binding", "pods/eviction", "serviceaccounts/token", "tokenreviews"]).await;
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
async fn a_review_of_a_change_has_the_generation_that_will_be_stored() {
    let setup = asked_about(&["pods", "pods/ephemeralcontainers", "deployments", "namespaces"]).await;
    let generations = |setup: &Setup| -> Vec<Value> {
        let of = |review: Value| review["object"]["metadata"]["generation"].clone();
        let mut reviews = setup.reviews();
        reviews.drain(..reviews.len() - 2);
        reviews.into_iter().map(of).collect()
    };
    let pod = format!("{NAMESPACE}/pods/a");
    let mut now = setup.admin.get(&pod).await.json();
    now["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
    let added = setup.admin.put(&format!("{pod}/ephemeralcontainers"), &now).await;
    assert_eq!(added.status, 200, "{}", added.text());
    assert_eq!(generations(&setup), [1, 2], "what may change it comes before the count");
    let patch = json!({"spec": {"activeDeadlineSeconds": 100}});
    let patched = setup.admin.merge(&pod, &patch).await.json();
    assert_eq!(
        (generations(&setup), &patched["metadata"]["generation"]),
        (vec![json!(2), json!(3)], &json!(3))
    );
    let labelled = setup.admin.merge(&pod, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled.status, 200, "{}", labelled.text());
    assert_eq!(generations(&setup), [3, 3], "a label counts for nothing");

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    setup.admin.post("/api/v1/namespaces", &namespace).await;
    let last = setup.reviews().into_iter().rfind(|review| review["resource"]["resource"] == "namespaces");
    let labels = &last.unwrap()["object"]["metadata"]["labels"];
    assert_eq!(labels, &json!({"kubernetes.io/metadata.name": "n"}), "last touches are made");
}

/// CVE-2021-25735: a webhook that goes by the old object is shown the one that is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_a_nodes_change_has_the_stored_node_as_its_old_one() {
    let setup = asked_about(&["nodes", "nodes/status"]).await;
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
async fn validating_webhooks_and_policies_see_a_generated_name_as_that_of_the_request() {
    let setup = Setup::start().await;
    setup.one(MUTATING, "allow", json!({})).await;
    let named =
        json!({"matchConditions": [{"name": "named", "expression": "request.name.startsWith('g-')"}]});
    setup.one(VALIDATING, "allow", named).await;
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}});
    let made = setup.admin.post(CONFIG_MAPS, &generated).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let reviews = setup.reviews();
    assert_eq!(reviews.len(), 2, "{reviews:?}");
    assert_eq!(reviews[0]["name"], Value::Null);
    assert_eq!(reviews[1]["name"], made.json()["metadata"]["name"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn managers_that_a_webhook_makes_invalid_are_reset_with_a_warning() {
    let setup = Setup::start().await;
    setup.one(MUTATING, "manage/Replace", json!({})).await;
    let made = setup.create("m").await;
    assert_eq!(made.status, 201, "{}", made.text());
    let managers = made.json()["metadata"]["managedFields"].clone();
    assert_eq!(managers[0]["fieldsV1"], json!({"f:data": {".": {}, "f:k": {}}}), "{managers}");
    let warning = ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: operation must be `Apply` or `Update`";
    assert_eq!(made.header("warning"), format!("299 - \"{warning}\""));
}
