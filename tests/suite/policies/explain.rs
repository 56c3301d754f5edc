//! Explain lists the policies that apply to a write, with their bindings and problems.

use portico_proto::routes::{AdmissionPolicy, ExplainRequest};
use portico_tests::objects::CONFIG_MAPS;
use serde_json::{Value, json};

use super::{BINDINGS, GROUP, POLICIES, Setup, validation};

async fn explained_policies(setup: &Setup, subject: &str) -> Vec<AdmissionPolicy> {
    let request = ExplainRequest { subject: subject.to_owned() };
    setup.portico.control().routes().explain(request).await.unwrap().into_inner().policies
}

async fn write(setup: &Setup, resource: &str, kind: &str, name: &str, spec: Value) {
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "spec": spec});
    let written = setup.admin.post(&format!("{GROUP}/{resource}"), &object).await;
    assert_eq!(written.status, 201, "{}", written.text());
}

fn about(operations: Value, mut spec: Value) -> Value {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": operations}]);
    spec["matchConstraints"] = json!({"resourceRules": rules});
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_lists_policies_with_bindings_and_problems() {
    let setup = Setup::start().await;
    let validates =
        async |name: &str, spec| write(&setup, POLICIES, "ValidatingAdmissionPolicy", name, spec).await;
    let binds = async |name: &str, spec| {
        write(&setup, BINDINGS, "ValidatingAdmissionPolicyBinding", name, spec).await
    };
    let mut plain = about(json!(["CREATE", "DELETE"]), validation("true"));
    plain["failurePolicy"] = json!("Ignore");
    validates("plain", plain).await;
    binds("b2", json!({"policyName": "plain", "validationActions": ["Deny", "Audit"]})).await;
    let creates = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]);
    let narrower = json!({"resourceRules": creates, "objectSelector": {"matchLabels": {"a": "b"}}});
    binds("b1", json!({"policyName": "plain", "validationActions": ["Warn"], "matchResources": narrower}))
        .await;
    let secrets = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["*"]}]});
    binds("b3", json!({"policyName": "plain", "validationActions": ["Warn"], "matchResources": secrets}))
        .await;
    validates("unbound", about(json!(["*"]), validation("true"))).await;
    let mut lost = about(json!(["*"]), validation("params.data.k == 'v'"));
    lost["paramKind"] = json!({"apiVersion": "lost.example.com/v1", "kind": "Thing"});
    lost["matchConditions"] = json!([{"name": "c", "expression": "true"}]);
    validates("lost", lost).await;
    let named = json!({"name": "missing", "parameterNotFoundAction": "Deny"});
    binds("l", json!({"policyName": "lost", "validationActions": ["Deny"], "paramRef": named})).await;
    let mut without = about(json!(["UPDATE"]), validation("params.data.k == 'v'"));
    without["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    validates("without", without).await;
    binds("w", json!({"policyName": "without", "validationActions": ["Deny"], "paramRef": named})).await;
    let labels = "Object{metadata: Object.metadata{labels: {'x': 'y'}}}";
    let mutations =
        json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": labels}}]);
    let change =
        about(json!(["CREATE", "UPDATE"]), json!({"mutations": mutations, "reinvocationPolicy": "Never"}));
    write(&setup, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", "zz", change).await;
    let bound = json!({"policyName": "zz"});
    write(&setup, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "m", bound).await;

    let all = explained_policies(&setup, CONFIG_MAPS).await;
    let names: Vec<_> = all.iter().map(|policy| (policy.kind.as_str(), policy.name.as_str())).collect();
    let validating = "ValidatingAdmissionPolicy";
    assert_eq!(
        names,
        [
            ("MutatingAdmissionPolicy", "zz"),
            (validating, "lost"),
            (validating, "plain"),
            (validating, "without")
        ]
    );
    let [change, lost, plain, without] = all.try_into().unwrap();
    assert_eq!((change.operations.len(), change.bindings[0].actions.len()), (2, 0));
    assert_eq!((plain.failure_policy.as_str(), plain.selective), ("Ignore", false));
    assert!(plain.problems.is_empty(), "{plain:?}");
    assert_eq!(plain.operations, ["CREATE", "DELETE"]);
    let bindings: Vec<_> = plain
        .bindings
        .iter()
        .map(|one| (one.name.as_str(), one.operations.len(), one.selective, one.actions.join(",")))
        .collect();
    assert_eq!(bindings, [("b1", 1, true, "Warn".to_owned()), ("b2", 2, false, "Deny,Audit".to_owned())]);
    assert_eq!((lost.failure_policy.as_str(), lost.selective), ("Fail", true));
    assert_eq!(
        lost.problems,
        ["failed to find resource referenced by paramKind: 'lost.example.com/v1, Kind=Thing'"]
    );
    assert_eq!(
        without.bindings[0].problem,
        "no params found for policy binding with `Deny` parameterNotFoundAction"
    );
    assert!(
        explained_policies(&setup, "/api/v1/configmaps")
            .await
            .iter()
            .all(|one| one.bindings[0].problem.is_empty())
    );
    assert!(explained_policies(&setup, "/api/v1/namespaces/default/secrets").await.is_empty());
}
