//! Audit of connections: annotations by admission are in the event, for accepted and refused connections.

use portico_tests::http::Http;
use portico_tests::objects::PODS;
use portico_tests::{Launch, eventually};
use serde_json::{Value, json};

use crate::audit::{events, with_audit_log};

const METADATA: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

async fn create(admin: &Http, path: &str, object: &Value) {
    // The namespace's service account may be created later.
    eventually(&format!("{path} accepts an object"), || async {
        let answer = admin.post(path, object).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

/// Writes a policy that annotates the container of each exec, and denies one.
async fn configure_exec_policy(admin: &Http) {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}]);
    let policy = json!({"metadata": {"name": "execs"}, "spec": {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.container != 'denied'", "message": "not this one"}],
        "auditAnnotations": [{"key": "container", "valueExpression": "string(object.container)"}]}});
    create(admin, POLICIES, &policy).await;
    let binding = json!({"metadata": {"name": "execs"},
        "spec": {"policyName": "execs", "validationActions": ["Deny", "Audit"]}});
    create(admin, BINDINGS, &binding).await;
}

/// Returns the event of an exec in this container.
async fn exec(admin: &Http, log: &std::path::Path, pod: &str, container: &str) -> Value {
    let path = format!("{PODS}/{pod}/exec?command=x&stdout=true&container={container}");
    let answer = admin.post(&path, &json!({})).await;
    let id = answer.header("audit-id").to_owned();
    let found = events(log, &id, 1).await;
    found.last().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_of_an_exec_are_in_its_event() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let portico = launch.start().await;
    let admin = portico.admin();
    configure_exec_policy(&admin).await;
    let address = json!({"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}});
    create(&admin, "/api/v1/nodes", &json!({"metadata": {"name": "n1"}, "status": address})).await;
    let containers = json!([{"name": "known", "image": "x"}, {"name": "denied", "image": "x"}]);
    for (name, node) in [("idle", Value::Null), ("placed", json!("n1"))] {
        let mut spec = json!({"automountServiceAccountToken": false, "containers": containers});
        if !node.is_null() {
            spec["nodeName"] = node;
        }
        create(&admin, PODS, &json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    let noted = eventually("the admission policy is in effect", || async {
        let event = exec(&admin, &log, "idle", "known").await;
        if event["annotations"]["execs/container"] == "known" { Ok(event) } else { Err(event) }
    })
    .await;
    assert_eq!(noted["responseStatus"]["code"], 400, "no node has the pod: {noted}");
    let dialled = exec(&admin, &log, "placed", "known").await;
    assert_eq!(dialled["annotations"]["execs/container"], "known", "{dialled}");
    assert_eq!(dialled["responseStatus"]["message"], "Upgrade request required", "{dialled}");
    let denied = exec(&admin, &log, "placed", "denied").await;
    assert_eq!(denied["responseStatus"]["code"], 422, "{denied}");
    assert_eq!(denied["annotations"]["execs/container"], "denied", "{denied}");
    let failure = &denied["annotations"]["validation.policy.admission.k8s.io/validation_failure"];
    assert!(failure.as_str().is_some_and(|failure| failure.contains("not this one")), "{denied}");
}
