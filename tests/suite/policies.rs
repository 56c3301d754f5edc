//! Admission policies: variables of expressions, effects of their results, and their cost limits.

mod explain;

use http::StatusCode;
use portico_tests::Portico;
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::CONFIG_MAPS;
use serde_json::{Value, json};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

/// A process and its administrator.
struct Setup {
    portico: Portico,
    admin: Http,
}

impl Setup {
    async fn start() -> Self {
        let portico = Portico::start().await;
        let admin = portico.admin();
        Self { portico, admin }
    }

    /// Writes an object of the group, replacing an existing one.
    async fn put(&self, resource: &str, kind: &str, spec: Value) -> FullResponse {
        let path = format!("{GROUP}/{resource}");
        self.admin.delete(&format!("{path}/p")).await;
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "p"}, "spec": spec});
        self.admin.post(&path, &object).await
    }

    /// Writes a policy for ConfigMaps with the changes of `policy`, and its binding with the changes of `binding`.
    async fn enforce(&self, policy: Value, binding: Value) {
        let policy = merge(json!({"matchConstraints": {"resourceRules": config_map_rules()}}), policy);
        let written = self.put(POLICIES, "ValidatingAdmissionPolicy", policy).await;
        assert_eq!(written.status, 201, "{}", written.text());
        let binding = merge(json!({"policyName": "p", "validationActions": ["Deny"]}), binding);
        let written = self.put(BINDINGS, "ValidatingAdmissionPolicyBinding", binding).await;
        assert_eq!(written.status, 201, "{}", written.text());
    }

    /// Writes a policy that makes these changes to ConfigMaps and Pods, with the changes of `policy`, and its binding.
    async fn change(&self, mutations: Value, policy: Value) -> FullResponse {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "pods"], "operations": ["*"]}]);
        let spec = json!({"matchConstraints": {"resourceRules": rules}, "mutations": mutations, "reinvocationPolicy": "Never"});
        let written =
            self.put("mutatingadmissionpolicies", "MutatingAdmissionPolicy", merge(spec, policy)).await;
        let binding = json!({"policyName": "p"});
        let bound =
            self.put("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", binding).await;
        assert_eq!(bound.status, 201, "{}", bound.text());
        written
    }

    /// Creates a ConfigMap as a dry run.
    async fn create(&self) -> FullResponse {
        self.admin.post(&format!("{CONFIG_MAPS}?dryRun=All"), &map()).await
    }
}

fn merge(mut base: Value, over: Value) -> Value {
    for (key, value) in over.as_object().into_iter().flatten() {
        base[key] = value.clone();
    }
    base
}

/// Returns the rules of a policy for ConfigMaps.
fn config_map_rules() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}])
}

fn map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"l": "x"}}, "data": {"k": "v"}})
}

/// Returns a policy with one validation.
fn validation(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

fn message(answer: &FullResponse) -> String {
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
        setup.enforce(validation(expression), json!({})).await;
        let created = setup.create().await;
        assert_eq!(created.status, 201, "{expression}: {}", created.text());
        setup.enforce(validation(&format!("!({expression})")), json!({})).await;
        let refused = setup.create().await;
        let start = "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: ";
        assert!(message(&refused).starts_with(start), "{expression}: {}", refused.text());
        refused.status_body(422, "Invalid");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_changes_apply_to_the_next_request() {
    let setup = Setup::start().await;
    for _ in 0..20 {
        setup.enforce(validation("false"), json!({})).await;
        assert_eq!(setup.create().await.status, 422);
        setup.admin.delete(&format!("{GROUP}/{BINDINGS}/p")).await;
        assert_eq!(setup.create().await.status, 201, "a policy without a binding has no effect");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_reasons_and_actions_are_those_of_the_policy() {
    let setup = Setup::start().await;
    let failing = |over: Value| merge(json!({"expression": "false"}), over);
    let table = [
        (json!({"message": "no"}), 422, "no"),
        (json!({"reason": "Forbidden", "message": "no"}), 403, "no"),
        (json!({"messageExpression": "'is ' + object.data.k", "message": "no"}), 422, "is v"),
        (json!({"messageExpression": "string(object.nothing)", "message": "no"}), 422, "no"),
        (json!({"messageExpression": "'a\\nb'"}), 422, "failed expression: false"),
    ];
    for (over, code, ends) in table {
        setup.enforce(json!({"validations": [failing(over.clone())]}), json!({})).await;
        let refused = setup.create().await;
        assert_eq!(refused.status, code, "{over}: {}", refused.text());
        assert!(
            message(&refused).ends_with(&format!("denied request: {ends}")),
            "{over}: {}",
            refused.text()
        );
    }
    setup.enforce(validation("false"), json!({"validationActions": ["Warn", "Audit"]})).await;
    let warned = setup.create().await;
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': failed expression: false\"";
    assert_eq!((warned.status, warned.header("warning")), (StatusCode::CREATED, warning));
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_lazy_and_composable() {
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
        let policy = merge(validation(expression), json!({"variables": variables}));
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
        let policy = validation(&format!("variables.v{} == {depth}", depth - 1));
        setup.enforce(merge(policy, json!({"variables": chain(depth)})), json!({})).await;
        assert_eq!(setup.create().await.status, code, "{depth} deep");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_selected_and_updated_at_once() {
    let setup = Setup::start().await;
    let parameter = |name: &str, most: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"role": "limit"}}, "data": {"most": most}});
    assert_eq!(setup.admin.post(CONFIG_MAPS, &parameter("limit", "5")).await.status, 201);
    let policy = merge(
        validation("object.data.size() <= int(params.data.most)"),
        json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
    );
    let references = [
        json!({"name": "limit", "parameterNotFoundAction": "Deny"}),
        json!({"selector": {"matchLabels": {"role": "limit"}}, "parameterNotFoundAction": "Deny"}),
    ];
    for reference in &references {
        setup.enforce(policy.clone(), json!({"paramRef": reference})).await;
        assert_eq!(setup.create().await.status, 201);
        setup.admin.merge(&format!("{CONFIG_MAPS}/limit"), &json!({"data": {"most": "0"}})).await;
        assert_eq!(setup.create().await.status, 422, "{reference}");
        setup.admin.delete(&format!("{GROUP}/{BINDINGS}/p")).await;
        setup.admin.merge(&format!("{CONFIG_MAPS}/limit"), &json!({"data": {"most": "5"}})).await;
    }
    let several = json!({"paramRef": references[1]});
    assert_eq!(setup.admin.post(CONFIG_MAPS, &parameter("other", "5")).await.status, 201);
    setup.enforce(policy.clone(), several).await;
    for (most, code) in [("5", 201), ("0", 422)] {
        setup.admin.merge(&format!("{CONFIG_MAPS}/other"), &json!({"data": {"most": most}})).await;
        for _ in 0..2 {
            assert_eq!(setup.create().await.status, code, "one of two parameters: {most}");
        }
    }
    let missing = |action: &str| json!({"paramRef": {"name": "nobody", "parameterNotFoundAction": action}});
    setup.enforce(policy.clone(), missing("Allow")).await;
    assert_eq!(setup.create().await.status, 201);
    setup.enforce(policy.clone(), missing("Deny")).await;
    let refused = message(&setup.create().await);
    assert!(refused.ends_with("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"), "{refused}");
    let unknown = merge(policy, json!({"paramKind": {"apiVersion": "x.y/v1", "kind": "Z"}}));
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
async fn conditions_and_constraints_select_requests() {
    let setup = Setup::start().await;
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let ignored = json!({"failurePolicy": "Ignore"});
    let other = json!({"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}});
    let none = json!({});
    let table = [
        (validation("object.nothing == 1"), &none, 422),
        (merge(validation("object.nothing == 1"), ignored.clone()), &none, 201),
        (merge(validation("false"), condition("object.data.k == 'w'")), &none, 201),
        (merge(validation("false"), condition("object.data.k == 'v'")), &none, 422),
        (merge(validation("true"), condition("object.nothing == 1")), &none, 422),
        (validation("false"), &other, 201),
    ];
    for (policy, binding, code) in table {
        setup.enforce(policy.clone(), binding.clone()).await;
        let created = setup.create().await;
        assert_eq!(created.status, code, "{policy} {binding}: {}", created.text());
    }
    setup.admin.delete(&format!("{GROUP}/{BINDINGS}/p")).await;
    assert_eq!(setup.admin.post(CONFIG_MAPS, &map()).await.status, 201);
    setup.enforce(validation("request.operation != 'DELETE' || oldObject.data.k != 'v'"), json!({})).await;
    assert_eq!(
        setup.admin.delete(&format!("{CONFIG_MAPS}/m")).await.status,
        422,
        "a delete has an old object"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_bindings_and_labels_apply_at_once() {
    let setup = Setup::start().await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"most": {"type": "integer"}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "limits.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "limits", "kind": "Limit"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(setup.admin.post(definitions, &definition).await.status, 201);
    let limits = "/apis/example.com/v1/namespaces/default/limits";
    portico_tests::wait_until("limits are served", || async { setup.admin.get(limits).await.status == 200 })
        .await;
    let limit = json!({"apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "one"}, "spec": {"most": 5}});
    assert_eq!(setup.admin.post(limits, &limit).await.status, 201);
    let kind = json!({"paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"}});
    let gold = json!({"namespaceSelector": {"matchLabels": {"tier": "gold"}}});
    let reference = json!({"name": "one", "parameterNotFoundAction": "Deny"});
    let policy = merge(validation("object.data.size() <= params.spec.most"), kind);
    setup.enforce(policy, json!({"paramRef": reference, "matchResources": gold})).await;
    let binding = format!("{GROUP}/{BINDINGS}/p");
    let tier = |tier: &str| json!({"metadata": {"labels": {"tier": tier}}});
    for _ in 0..5 {
        setup.admin.merge("/api/v1/namespaces/default", &tier("gold")).await;
        assert_eq!(setup.create().await.status, 201, "the parameter allows the request");
        setup.admin.merge(&format!("{limits}/one"), &json!({"spec": {"most": 0}})).await;
        assert_eq!(setup.create().await.status, 422, "the parameter has changed");
        setup.admin.merge("/api/v1/namespaces/default", &tier("iron")).await;
        assert_eq!(setup.create().await.status, 201, "the namespace is no longer selected");
        setup.admin.merge("/api/v1/namespaces/default", &tier("gold")).await;
        assert_eq!(setup.create().await.status, 422, "the namespace is selected again");
        setup.admin.merge(&binding, &json!({"spec": {"validationActions": ["Warn"]}})).await;
        assert_eq!(setup.create().await.status, 201, "the binding warns");
        setup.admin.merge(&binding, &json!({"spec": {"validationActions": ["Deny"]}})).await;
        setup.admin.delete(&format!("{limits}/one")).await;
        let refused = message(&setup.create().await);
        assert!(refused.contains("no params found for policy binding"), "{refused}");
        assert_eq!(setup.admin.post(limits, &limit).await.status, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_expressions_are_limited_by_their_budget() {
    let setup = Setup::start().await;
    let numbers = format!("[{}]", (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let loops = format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))");
    let doubling =
        (0..40).fold("'xxxxxxxxxxxxxxxxxxxx'".to_owned(), |text, _| format!("{text}.replace('x', 'xxxx')"));
    let hostile = [
        loops.clone(),
        format!("{numbers}.map(a, {numbers}.map(b, {numbers}.map(c, string(a + b + c)))).size() > 0"),
        format!("{doubling}.size() > 0"),
        format!(
            "{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a*)*b') || true)))"
        ),
        format!(
            "{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, url('https://example.com/a?b=c').getHost() != '')))"
        ),
    ];
    for expression in hostile {
        setup.enforce(validation(&expression), json!({})).await;
        let refused = setup.create().await;
        let words = "resulted in error: operation cancelled: actual cost limit exceeded";
        assert!(message(&refused).ends_with(words), "{expression}: {}", refused.text());
    }
    let validations: Vec<Value> = (0..50).map(|_| json!({"expression": loops})).collect();
    setup.enforce(json!({"validations": validations}), json!({})).await;
    let refused = message(&setup.create().await);
    assert!(
        refused.ends_with("running out of cost budget, no further validation rules will be run"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_are_counted_under_the_names_of_upstream() {
    let setup = Setup::start().await;
    // Controllers write ConfigMaps as well, which would be counted.
    let own = json!({"matchResources": {"objectSelector": {"matchLabels": {"l": "x"}}}});
    setup
        .enforce(validation("false"), merge(own.clone(), json!({"validationActions": ["Deny", "Audit"]})))
        .await;
    assert_eq!(setup.create().await.status, 422);
    setup
        .enforce(merge(validation("object.nothing == 1"), json!({"failurePolicy": "Ignore"})), own.clone())
        .await;
    assert_eq!(setup.create().await.status, 201);
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    for expression in ["object.nothing == 1", "false"] {
        setup.enforce(merge(validation("true"), condition(expression)), own.clone()).await;
        setup.create().await;
    }
    setup.admin.delete(&format!("{GROUP}/{BINDINGS}/p")).await;
    let wrong = applied("Object{data: {'a': object.nothing}}");
    let labelled =
        json!({"resourceRules": config_map_rules(), "objectSelector": {"matchLabels": {"l": "x"}}});
    let own = json!({"matchConstraints": labelled});
    setup.change(json!([applied("Object{data: {'a': 'b'}}"), wrong]), own).await;
    assert_eq!(setup.create().await.status, 403);
    let metrics = setup.admin.get("/metrics").await.text();
    let check = |error: &str, action: &str| {
        format!(
            "apiserver_validating_admission_policy_check_total{{enforcement_action=\"{action}\",error_type=\"{error}\",policy=\"p\",policy_binding=\"p\"}}"
        )
    };
    let change = |error: &str| {
        format!(
            "apiserver_mutating_admission_policy_check_total{{error_type=\"{error}\",policy=\"p\",policy_binding=\"p\"}}"
        )
    };
    let conditions = |name: &str| {
        format!(
            "apiserver_admission_match_condition_{name}{{kind=\"policy\",name=\"p\",operation=\"CREATE\",type=\"validate\"}}"
        )
    };
    let expected = [
        (check("invalid_error", "deny"), 2),
        (check("invalid_error", "audit"), 1),
        (check("invalid_error", "allow"), 1),
        (change("no_error"), 1),
        (change("invalid_error"), 1),
        (conditions("exclusions_total"), 1),
        (conditions("evaluation_errors_total"), 1),
    ];
    for (series, count) in expected {
        assert_eq!(sample(&metrics, &series), Some(count), "{series}\n{metrics}");
    }
    for name in ["compilation", "evaluation"] {
        let count = sample(&metrics, &format!("apiserver_cel_{name}_duration_seconds_count"));
        assert!(count.is_some_and(|count| count > 0), "{name}: {count:?}");
    }
}

/// Returns the value of a series, independent of the order of its labels.
fn sample(metrics: &str, series: &str) -> Option<u64> {
    let parts = |text: &str| {
        let (name, labels) = text.split_once('{').unwrap_or((text, ""));
        let mut labels: Vec<String> = labels.trim_end_matches('}').split(',').map(str::to_owned).collect();
        labels.sort();
        (name.to_owned(), labels)
    };
    let wanted = parts(series);
    let found = metrics.lines().filter_map(|line| line.rsplit_once(' ')).find(|(of, _)| parts(of) == wanted);
    found.and_then(|(_, value)| value.parse().ok())
}

fn applied(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patched(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test(flavor = "multi_thread")]
async fn managers_that_a_policy_makes_invalid_are_reset_with_a_warning() {
    let setup = Setup::start().await;
    let managers = "[{'manager': 'm', 'operation': 'Replace', 'apiVersion': 'v1', 'fieldsType': 'FieldsV1'}]";
    let patch = format!("[JSONPatch{{op: 'add', path: '/metadata/managedFields', value: {managers}}}]");
    let written = setup.change(json!([patched(&patch)]), json!({})).await;
    assert_eq!(written.status, 201, "{}", written.text());
    let made = setup.create().await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json()["metadata"]["managedFields"][0]["operation"], "Update", "{}", made.text());
    let warning = made.header("warning");
    assert!(warning.contains(".metadata.managedFields was in an invalid state after admission"), "{warning}");
    assert!(warning.contains("operation must be `Apply` or `Update`"), "{warning}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_changed_by_configurations_and_patches() {
    let setup = Setup::start().await;
    let table = [
        (
            applied("Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"),
            "/metadata/labels/by",
            json!("policy"),
        ),
        (
            applied("Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"),
            "/metadata/labels/l",
            json!("x"),
        ),
        (applied("Object{data: {'size': string(object.data.size())}}"), "/data/size", json!("1")),
        (
            applied("Object{metadata: Object.metadata{?labels: optional.none()}}"),
            "/metadata/labels/l",
            json!("x"),
        ),
        (patched("[JSONPatch{op: 'add', path: '/data/a', value: 'b'}]"), "/data/a", json!("b")),
        (patched("[JSONPatch{op: 'remove', path: '/data/k'}]"), "/data/k", Value::Null),
        (
            patched(
                "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]",
            ),
            "/metadata/labels/a~1b",
            json!("c"),
        ),
        (
            patched(
                "[JSONPatch{op: 'test', path: '/data/k', value: 'w'}, JSONPatch{op: 'remove', path: '/data/k'}]",
            ),
            "/data/k",
            json!("v"),
        ),
    ];
    for (mutation, place, value) in table {
        let written = setup.change(json!([mutation]), json!({})).await;
        assert_eq!(written.status, 201, "{}", written.text());
        let created = setup.create().await;
        assert_eq!(created.status, 201, "{mutation}: {}", created.text());
        assert_eq!(created.json().pointer(place).cloned().unwrap_or_default(), value, "{mutation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_merged_by_key_and_atomic_values_refused() {
    let setup = Setup::start().await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "a", "image": "i", "args": ["x"]}]}});
    let pods = "/api/v1/namespaces/default/pods?dryRun=All";
    let container = |fields: &str| {
        format!("Object{{spec: Object.spec{{containers: [Object.spec.containers{{name: 'a', {fields}}}]}}}}")
    };
    let env = container("env: [Object.spec.containers.env{name: 'E', value: 'e'}]");
    setup.change(json!([applied(&env)]), json!({})).await;
    let created = setup.admin.post(pods, &pod).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let container_of = |answer: &FullResponse| answer.json()["spec"]["containers"][0].clone();
    assert_eq!(container_of(&created)["env"], json!([{"name": "E", "value": "e"}]));
    assert_eq!(
        container_of(&created)["args"],
        json!(["x"]),
        "fields outside the configuration are unchanged"
    );
    setup.change(json!([applied(&container("args: ['y']"))]), json!({})).await;
    let refused = setup.admin.post(pods, &pod).await;
    let words = "policy 'p' with binding 'p' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args";
    assert_eq!((refused.status, message(&refused)), (StatusCode::FORBIDDEN, words.to_owned()));
    assert_eq!(refused.json()["reason"], "Invalid");
    setup.change(json!([applied(&container("args: ['y']"))]), json!({"failurePolicy": "Ignore"})).await;
    assert_eq!(setup.admin.post(pods, &pod).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn mutating_expressions_are_checked_on_write() {
    let setup = Setup::start().await;
    let refused = [
        (applied("{'a': 'b'}"), "must evaluate to Object but got map(string, string)"),
        (applied("Object.spec{a: 1}"), "must evaluate to Object but got Object.spec"),
        (applied("Object{"), "compilation failed: ERROR: <input>:1:8: Syntax error"),
        (patched("['a']"), "must evaluate to list(JSONPatch) but got list(string)"),
        (patched("[JSONPatch{op: 1}]"), "expected type of field 'op' is 'string' but provided type is 'int'"),
        (
            patched("[JSONPatch{verb: 'add'}]"),
            "expected type of field 'verb' is '' but provided type is 'string'",
        ),
        (patched("[Nobody{op: 'add'}]"), "undeclared reference to 'Nobody' (in container '')"),
    ];
    for (mutation, words) in refused {
        let written = setup.change(json!([mutation]), json!({})).await;
        assert_eq!(written.status, 422, "{mutation}: {}", written.text());
        assert!(message(&written).contains(words), "{mutation}: {}", written.text());
    }
    setup.change(json!([applied("Object{metadata: Object.data{labels: {'a': 'b'}}}")]), json!({})).await;
    let misnamed = setup.create().await;
    let words = r#"type mismatch: unexpected type name "Object.data", expected "Object.metadata", which matches field name path from root Object type"#;
    assert!(message(&misnamed).ends_with(words), "{}", misnamed.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn mutating_policies_precede_webhooks_and_validation() {
    let setup = Setup::start().await;
    setup
        .change(
            json!([
                applied("Object{data: {'added': 'yes'}}"),
                patched("[JSONPatch{op: 'copy', from: '/data/added', path: '/data/copied'}]")
            ]),
            json!({}),
        )
        .await;
    setup.enforce(validation("object.data.copied == 'yes'"), json!({})).await;
    let created = setup.create().await;
    assert_eq!(
        created.json()["data"],
        json!({"added": "yes", "copied": "yes", "k": "v"}),
        "{}",
        created.text()
    );
    let managers = created.json()["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("f:added"), "fields set by a policy have no manager: {managers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_are_changed_along_their_schema() {
    let setup = Setup::start().await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "kept": {"type": "string"}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(setup.admin.post(definitions, &definition).await.status, 201);
    let things = "/apis/example.com/v1/namespaces/default/things";
    portico_tests::wait_until("things are served", || async { setup.admin.get(things).await.status == 200 })
        .await;
    let rules = json!([{"apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["things"], "operations": ["CREATE"]}]);
    let over = json!({"matchConstraints": {"resourceRules": rules}});
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"kept": "k"}});
    setup.change(json!([applied("Object{spec: Object.spec{size: 3}}")]), over.clone()).await;
    let created = setup.admin.post(&format!("{things}?dryRun=All"), &thing).await;
    assert_eq!(created.json()["spec"], json!({"kept": "k", "size": 3}), "{}", created.text());
    setup.change(json!([applied("Object{spec: Object.spec{unknown: 3}}")]), over.clone()).await;
    let refused = setup.admin.post(&format!("{things}?dryRun=All"), &thing).await;
    assert!(message(&refused).contains(".spec.unknown: field not declared in schema"), "{}", refused.text());
    let unknown = "[JSONPatch{op: 'add', path: '/spec/unknown', value: 3}, JSONPatch{op: 'add', path: '/more', value: 3}]";
    setup.change(json!([patched(unknown)]), over).await;
    let pruned = setup.admin.post(&format!("{things}?dryRun=All"), &thing).await;
    assert_eq!(pruned.status, 201, "{}", pruned.text());
    assert_eq!((&pruned.json()["spec"], &pruned.json()["more"]), (&json!({"kept": "k"}), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_other_types_than_their_fields_are_refused() {
    let setup = Setup::start().await;
    for (value, place) in [
        ("data: {'x': 5}", ".data.x: "),
        ("data: {'x': dyn(null)}", ".data.x: "),
        ("data: dyn(null)", ".data: "),
        ("data: {'x': dyn(b'ab')}", ".data.x: "),
        ("data: {'x': dyn(duration('5s'))}", ".data.x: "),
        ("data: {'x': dyn(timestamp('2024-01-01T00:00:00Z'))}", ".data.x: "),
        ("immutable: dyn(null)", ".immutable: "),
        ("immutable: dyn(1u)", ".immutable: "),
        ("metadata: Object.metadata{labels: {'a': dyn(null)}}", ".metadata.labels.a: "),
        ("metadata: Object.metadata{finalizers: dyn([dyn('a/b'), dyn(null)])}", ".metadata.finalizers[1]: "),
    ] {
        setup.change(json!([applied(&format!("Object{{{value}}}"))]), json!({})).await;
        let refused = setup.create().await;
        assert_eq!(refused.status, 403, "{value}: {}", refused.text());
        let words = format!("error applying patch: failed to convert patch object to typed object: {place}");
        assert!(message(&refused).contains(&words), "{value}: {}", refused.text());
    }
    let encoded = "Object{binaryData: {'x': '!!'}}";
    setup.change(json!([applied(encoded)]), json!({})).await;
    let refused = setup.create().await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let words = "denied request: unable to convert unstructured object to /v1, Kind=ConfigMap: ";
    assert!(message(&refused).contains(words), "{}", refused.text());
}
