//! Events that the controllers of Services and budgets record, as kube-controller-manager's do.

use portico_tests::http::Http;
use portico_tests::objects::PODS;
use portico_tests::{Portico, wait_until};
use serde_json::{Value, json};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Returns the events with a reason for an object.
async fn events(admin: &Http, about: &str, reason: &str) -> Vec<Value> {
    let selector = format!("involvedObject.name={about},reason={reason}");
    let listed = admin.get(&format!("/api/v1/namespaces/default/events?fieldSelector={selector}")).await;
    listed.json()["items"].as_array().unwrap().clone()
}

/// Returns the only event with a reason for an object, once it was recorded `count` times.
async fn event(admin: &Http, about: &str, reason: &str, count: i64) -> Value {
    wait_until(&format!("{reason} is recorded"), async || {
        let found = events(admin, about, reason).await;
        found.iter().any(|event| event["count"].as_i64() >= Some(count))
    })
    .await;
    let found = events(admin, about, reason).await;
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

async fn pod(admin: &Http, name: &str, more: Value) {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"nodeName": "gone", "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        pod["metadata"][key] = value.clone();
    }
    wait_until("the pod is created", async || admin.post(PODS, &pod).await.status == 201).await;
    let status = json!({"status": {"phase": "Running", "podIP": "10.9.0.1", "podIPs": [{"ip": "10.9.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(admin.merge(&format!("{PODS}/{name}/status"), &status).await.status, 200);
}

async fn budget(admin: &Http, name: &str, spec: Value) {
    let mut budget = json!({"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "x"}}}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        budget["spec"][key] = value.clone();
    }
    assert_eq!(admin.post(BUDGETS, &budget).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_reports_on_a_budget_are_counted_in_the_same_event() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    budget(&admin, "b", json!({"minAvailable": 1})).await;
    let first = event(&admin, "b", "NoPods", 1).await;
    assert_eq!((&first["type"], &first["message"]), (&json!("Normal"), &json!("No matching pods found")));
    assert_eq!(first["source"], json!({"component": "controllermanager"}));
    assert_eq!(first["reportingComponent"], "controllermanager");
    let about = &first["involvedObject"];
    assert_eq!((&about["kind"], &about["apiVersion"]), (&json!("PodDisruptionBudget"), &json!("policy/v1")));
    let more = first["count"].as_i64().unwrap() + 1;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(admin.merge(&format!("{BUDGETS}/b"), &label).await.status, 200);
    let again = event(&admin, "b", "NoPods", more).await;
    assert_eq!(again["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(again["firstTimestamp"], first["firstTimestamp"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_report_pods_that_they_cannot_count() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    pod(&admin, "alone", json!({})).await;
    budget(&admin, "share", json!({"maxUnavailable": 1})).await;
    let unmanaged = event(&admin, "share", "UnmanagedPods", 1).await;
    let selector = "(selector: &LabelSelector{MatchLabels:map[string]string{app: x,},MatchExpressions:[]LabelSelectorRequirement{},})";
    assert!(unmanaged["message"].as_str().unwrap().contains(selector), "{unmanaged}");
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Unknown", "name": "u", "uid": "u", "controller": true}]);
    pod(&admin, "owned", json!({"ownerReferences": owner})).await;
    let failed = event(&admin, "share", "CalculateExpectedPodCountFailed", 1).await;
    assert_eq!(failed["type"], "Warning");
    let message = failed["message"].as_str().unwrap();
    assert!(message.starts_with("Failed to calculate the number of expected pods: "), "{message}");
    budget(&admin, "other", json!({"minAvailable": 0})).await;
    admin.merge(&format!("{PODS}/alone"), &json!({"metadata": {"labels": {"more": "x"}}})).await;
    let several = event(&admin, "alone", "MultiplePodDisruptionBudgets", 1).await;
    let words = r#"Pod "default"/"alone" matches multiple PodDisruptionBudgets.  Chose "other" arbitrarily."#;
    assert_eq!(several["message"], words);
}

#[tokio::test(flavor = "multi_thread")]
async fn services_report_refused_endpoints_and_omitted_pods() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    pod(&admin, "p", json!({})).await;
    let rules = json!([{"apiGroups": ["", "discovery.k8s.io"], "apiVersions": ["v1"],
        "resources": ["endpoints", "endpointslices"], "operations": ["CREATE"]}]);
    let validation = json!({"expression": "!object.metadata.?name.orValue('').startsWith('refused') && !object.metadata.?generateName.orValue('').startsWith('refused')", "message": "not here"});
    let spec = json!({"matchConstraints": {"resourceRules": rules}, "validations": [validation]});
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let created = admin.post(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let created = admin.post(&format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding).await;
    assert_eq!(created.status, 201, "{}", created.text());
    for (name, app) in [("refused", "none"), ("backend", "x")] {
        let service =
            json!({"metadata": {"name": name}, "spec": {"selector": {"app": app}, "ports": [{"port": 80}]}});
        assert_eq!(admin.post(SERVICES, &service).await.status, 201);
    }
    let endpoints = event(&admin, "refused", "FailedToCreateEndpoint", 2).await;
    assert_eq!(endpoints["source"]["component"], "endpoint-controller");
    assert_eq!(endpoints["involvedObject"]["kind"], "Endpoints");
    let message = endpoints["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "Failed to create endpoint for service default/refused: endpoints \"refused\" is forbidden"
        ),
        "{message}"
    );
    // The names of slices are generated, so that each refusal has a different message.
    let of_slices = async || events(&admin, "refused", "FailedToUpdateEndpointSlices").await;
    wait_until("a refused slice is reported twice", async || of_slices().await.len() >= 2).await;
    let slices = of_slices().await.remove(0);
    assert_eq!(slices["source"]["component"], "endpoint-slice-controller");
    let message = slices["message"].as_str().unwrap();
    assert!(message.starts_with("Error updating Endpoint Slices for Service default/refused: failed to create EndpointSlice for Service default/refused: endpointslices"), "{message}");
    let skipped = event(&admin, "backend", "FailedToUpdateEndpointSlices", 1).await;
    assert_eq!(
        skipped["message"],
        "Error updating Endpoint Slices for Service default/backend: skipping Pod p for Service default/backend: Node gone Not Found"
    );
}
