//! Admission policies: what expressions see of a request, what follows from what they say, and what they may cost.

use std::time::{Duration, Instant};

use http::StatusCode;
use portico_tests::Portico;
use portico_tests::http::{Answer, Http};
use serde_json::{Value, json};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A process and its administrator.
struct Setup {
    _portico: Portico,
    admin: Http,
}

impl Setup {
    async fn start() -> Self {
        let portico = Portico::start().await;
        let admin = portico.admin();
        Self { _portico: portico, admin }
    }

    /// Writes an object of the group in the place of what is there.
    async fn put(&self, resource: &str, kind: &str, spec: Value) -> Answer {
        let path = format!("{GROUP}/{resource}");
        self.admin.delete(&format!("{path}/p")).await;
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "p"}, "spec": spec});
        self.admin.post(&path, &object).await
    }

    /// A policy about ConfigMaps, laid over by `policy`, and its binding, laid over by `binding`.
    async fn enforce(&self, policy: Value, binding: Value) {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]);
        let policy = laid_over(json!({"matchConstraints": {"resourceRules": rules}}), policy);
        let written = self.put(POLICIES, "ValidatingAdmissionPolicy", policy).await;
        assert_eq!(written.status, 201, "{}", written.text());
        let binding = laid_over(json!({"policyName": "p", "validationActions": ["Deny"]}), binding);
        let written = self.put(BINDINGS, "ValidatingAdmissionPolicyBinding", binding).await;
        assert_eq!(written.status, 201, "{}", written.text());
    }

    /// What creating a ConfigMap comes to, without keeping it.
    async fn create(&self) -> Answer {
        self.admin.post(&format!("{MAPS}?dryRun=All"), &map()).await
    }
}

fn laid_over(mut base: Value, over: Value) -> Value {
    for (key, value) in over.as_object().into_iter().flatten() {
        base[key] = value.clone();
    }
    base
}

fn map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"l": "x"}}, "data": {"k": "v"}})
}

/// A policy of one validation.
fn must(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_see_the_request_its_objects_and_its_namespace() {
    let setup = Setup::start().await;
    let holds = [
        "object.data.k == 'v' && object.metadata.labels['l'] == 'x'",
        "oldObject == null",
        "request.operation == 'CREATE' && request.name == 'm' && request.dryRun",
        "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
        "request.userInfo.groups.exists(g, g == 'system:masters')",
        "request.options.kind == 'CreateOptions'",
        "namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'",
        "authorizer.requestResource.check('create').allowed()",
        "!authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get').allowed()",
        "!has(object.spec)",
    ];
    for expression in holds {
        setup.enforce(must(expression), json!({})).await;
        let created = setup.create().await;
        assert_eq!(created.status, 201, "{expression}: {}", created.text());
        setup.enforce(must(&format!("!({expression})")), json!({})).await;
        let refused = setup.create().await;
        let start = "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: ";
        assert!(message(&refused).starts_with(start), "{expression}: {}", refused.text());
        refused.status_body(422, "Invalid");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_in_force_with_the_next_request_and_gone_with_the_one_after_its_end() {
    let setup = Setup::start().await;
    for _ in 0..20 {
        setup.enforce(must("false"), json!({})).await;
        assert_eq!(setup.create().await.status, 422);
        setup.admin.delete(&format!("{GROUP}/{BINDINGS}/p")).await;
        assert_eq!(setup.create().await.status, 201, "a policy that is not bound does nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_reasons_and_actions_are_those_of_the_policy() {
    let setup = Setup::start().await;
    let said = |over: Value| laid_over(json!({"expression": "false"}), over);
    let table = [
        (json!({"message": "no"}), 422, "no"),
        (json!({"reason": "Forbidden", "message": "no"}), 403, "no"),
        (json!({"messageExpression": "'is ' + object.data.k", "message": "no"}), 422, "is v"),
        (json!({"messageExpression": "string(object.nothing)", "message": "no"}), 422, "no"),
        (json!({"messageExpression": "'a\\nb'"}), 422, "failed expression: false"),
    ];
    for (over, code, ends) in table {
        setup.enforce(json!({"validations": [said(over.clone())]}), json!({})).await;
        let refused = setup.create().await;
        assert_eq!(refused.status, code, "{over}: {}", refused.text());
        assert!(
            message(&refused).ends_with(&format!("denied request: {ends}")),
            "{over}: {}",
            refused.text()
        );
    }
    setup.enforce(must("false"), json!({"validationActions": ["Warn", "Audit"]})).await;
    let warned = setup.create().await;
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': failed expression: false\"";
    assert_eq!((warned.status, warned.header("warning")), (StatusCode::CREATED, warning));
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_evaluated_when_they_are_needed_and_build_on_each_other() {
    let setup = Setup::start().await;
    let variables = json!([
        {"name": "data", "expression": "object.data"},
        {"name": "size", "expression": "variables.data.size()"},
        {"name": "broken", "expression": "object.spec.missing"},
    ]);
    for (expression, code) in [
        ("variables.size == 1 && variables.data.k == 'v'", 201),
        ("variables.size == 1 || variables.broken == 1", 201),
        ("variables.size == 2 || variables.broken == 1", 422),
    ] {
        let policy = laid_over(must(expression), json!({"variables": variables}));
        setup.enforce(policy, json!({})).await;
        let created = setup.create().await;
        assert_eq!(created.status, code, "{expression}: {}", created.text());
    }
    assert!(
        message(&setup.create().await)
            .contains(r#"composited variable "broken" fails to evaluate: no such key: spec"#)
    );
    let chain = |depth: usize| -> Value {
        let variable = |at: usize| match at {
            0 => json!({"name": "v0", "expression": "1"}),
            at => json!({"name": format!("v{at}"), "expression": format!("variables.v{} + 1", at - 1)}),
        };
        (0..depth).map(variable).collect()
    };
    for (depth, code) in [(60, 201), (2_000, 422)] {
        let policy = must(&format!("variables.v{} == {depth}", depth - 1));
        setup.enforce(laid_over(policy, json!({"variables": chain(depth)})), json!({})).await;
        assert_eq!(setup.create().await.status, code, "{depth} deep");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_found_by_name_and_by_label_and_followed_at_once() {
    let setup = Setup::start().await;
    let parameter = |name: &str, most: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"role": "limit"}}, "data": {"most": most}});
    assert_eq!(setup.admin.post(MAPS, &parameter("limit", "5")).await.status, 201);
    let policy = laid_over(
        must("object.data.size() <= int(params.data.most)"),
        json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
    );
    let references = [
        json!({"name": "limit", "parameterNotFoundAction": "Deny"}),
        json!({"selector": {"matchLabels": {"role": "limit"}}, "parameterNotFoundAction": "Deny"}),
    ];
    for reference in references {
        setup.enforce(policy.clone(), json!({"paramRef": reference})).await;
        assert_eq!(setup.create().await.status, 201);
        setup.admin.merge(&format!("{MAPS}/limit"), &json!({"data": {"most": "0"}})).await;
        assert_eq!(setup.create().await.status, 422, "{reference}");
        setup.admin.delete(&format!("{GROUP}/{BINDINGS}/p")).await;
        setup.admin.merge(&format!("{MAPS}/limit"), &json!({"data": {"most": "5"}})).await;
    }
    let missing = |action: &str| json!({"paramRef": {"name": "nobody", "parameterNotFoundAction": action}});
    setup.enforce(policy.clone(), missing("Allow")).await;
    assert_eq!(setup.create().await.status, 201);
    setup.enforce(policy.clone(), missing("Deny")).await;
    let refused = message(&setup.create().await);
    assert!(refused.ends_with("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"), "{refused}");
    let unknown = laid_over(policy, json!({"paramKind": {"apiVersion": "x.y/v1", "kind": "Z"}}));
    setup.enforce(unknown, missing("Allow")).await;
    let refused = message(&setup.create().await);
    assert!(
        refused.ends_with(
            "failed to configure policy: failed to find resource referenced by paramKind: 'x.y/v1, Kind=Z'"
        ),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_policies_conditions_and_constraints_decide_who_is_concerned() {
    let setup = Setup::start().await;
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let ignored = json!({"failurePolicy": "Ignore"});
    let other = json!({"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}});
    let none = json!({});
    let table = [
        (must("object.nothing == 1"), &none, 422),
        (laid_over(must("object.nothing == 1"), ignored.clone()), &none, 201),
        (laid_over(must("false"), condition("object.data.k == 'w'")), &none, 201),
        (laid_over(must("false"), condition("object.data.k == 'v'")), &none, 422),
        (laid_over(must("true"), condition("object.nothing == 1")), &none, 422),
        (must("false"), &other, 201),
    ];
    for (policy, binding, code) in table {
        setup.enforce(policy.clone(), binding.clone()).await;
        let created = setup.create().await;
        assert_eq!(created.status, code, "{policy} {binding}: {}", created.text());
    }
    setup.admin.delete(&format!("{GROUP}/{BINDINGS}/p")).await;
    assert_eq!(setup.admin.post(MAPS, &map()).await.status, 201);
    setup.enforce(must("request.operation != 'DELETE' || oldObject.data.k != 'v'"), json!({})).await;
    assert_eq!(setup.admin.delete(&format!("{MAPS}/m")).await.status, 422, "a delete has an old object");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_expressions_cost_their_budget_and_no_more() {
    let setup = Setup::start().await;
    let numbers = format!("[{}]", (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let loops = format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))");
    let validations: Vec<Value> = (0..50).map(|_| json!({"expression": loops})).collect();
    setup.enforce(json!({"validations": validations}), json!({})).await;
    let begun = Instant::now();
    let refused = setup.create().await;
    assert!(message(&refused).contains("cost"), "{}", refused.text());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
