//! Type checking of ValidatingAdmissionPolicies, reported in their status: the warnings that
//! kube-controller-manager 1.36.3 wrote for the same policies (`type_checking.json`).

use portico_tests::http::Http;
use portico_tests::{Portico, wait_until};
use serde::Deserialize;
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const MANAGER: &str = "validatingadmissionpolicy-status";

/// A policy, and the recorded warnings: positions and texts.
#[derive(Deserialize)]
struct Recorded {
    name: String,
    spec: Value,
    warnings: Vec<(String, String)>,
}

/// Defines a resource that some of the policies match.
async fn define(admin: &Http, plural: &str, kind: &str, scope: &str) {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {
        "most": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "mapped": {"type": "array", "items": {"type": "object", "properties": {"n": text, "v": text}}}}});
    let status = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.eval.example.com")},
        "spec": {"group": "eval.example.com", "scope": scope, "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(admin.post(path, &definition).await.status, 201);
    let served = format!("/apis/eval.example.com/v1/{plural}");
    wait_until("the resource is served", || async { admin.get(&served).await.status == 200 }).await;
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": spec})
}

/// Waits until this generation of the policy was checked; returns the policy.
async fn wait_checked(admin: &Http, name: &str, generation: i64) -> Value {
    let path = format!("{POLICIES}/{name}");
    let is_checked = || async { admin.get(&path).await.json()["status"]["observedGeneration"] == generation };
    wait_until("the policy is checked", is_checked).await;
    admin.get(&path).await.json()
}

fn warnings(policy: &Value) -> Vec<(String, String)> {
    let warnings = policy["status"]["typeChecking"]["expressionWarnings"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let warning = |one: &Value| (text(&one["fieldRef"]), text(&one["warning"]));
    warnings.into_iter().flatten().map(warning).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn type_errors_have_upstreams_warnings() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    define(&admin, "limits", "Limit", "Namespaced").await;
    define(&admin, "globals", "Global", "Cluster").await;
    let recorded: Vec<Recorded> = serde_json::from_str(include_str!("type_checking.json")).unwrap();
    for Recorded { name, spec, .. } in &recorded {
        let created = admin.post(POLICIES, &policy(name, spec)).await;
        assert_eq!(created.status, 201, "{name}: {}", created.text());
    }
    for Recorded { name, warnings: expected, .. } in &recorded {
        let policy = wait_checked(&admin, name, 1).await;
        assert_eq!(warnings(&policy), *expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_checked_again_when_its_spec_changes() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]);
    let spec = |expression: &str| json!({"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}]});
    let wrong = policy("p", &spec("object.spec.nobody == 1"));
    assert_eq!(admin.post(POLICIES, &wrong).await.status, 201);
    let first = wait_checked(&admin, "p", 1).await;
    assert_eq!(warnings(&first).len(), 1, "{first}");
    let managers = first["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let own = managers.iter().find(|entry| entry["manager"] == MANAGER).cloned().unwrap_or_default();
    assert_eq!((&own["operation"], &own["subresource"]), (&json!("Apply"), &json!("status")), "{first}");
    let patch = json!({"spec": {"validations": [{"expression": "object.spec.nodeName == 'n'"}]}});
    assert_eq!(admin.merge(&format!("{POLICIES}/p"), &patch).await.status, 200);
    let second = wait_checked(&admin, "p", 2).await;
    assert_eq!(second["status"], json!({"observedGeneration": 2}), "{second}");
}
