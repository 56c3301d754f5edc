//! Authorizers other than RBAC: webhooks, ABAC policies, and the authorization configuration file.

use http::Request;
use http_body_util::Full;
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::{API_SERVICES, CONFIG_MAPS};
use portico_tests::{Backend, Behavior, Launch, Portico, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A webhook backend, and its kubeconfig.
struct WebhookSetup {
    backend: Backend,
    launch: Launch,
    folder: std::path::PathBuf,
}

impl WebhookSetup {
    async fn prepare(launch: Launch) -> Self {
        let backend = Backend::with_names("access", &["127.0.0.1"]).await;
        let (launch, folder) = launch.prepare_folder();
        std::fs::write(folder.join("ca.crt"), &backend.ca).unwrap();
        let kubeconfig = json!({"kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "access", "user": "me"}}],
            "clusters": [{"name": "access", "cluster": {
                "server": format!("{}/access", backend.url()), "certificate-authority": "ca.crt"}}],
            "users": [{"name": "me", "user": {"token": "known"}}]});
        std::fs::write(folder.join("access.kubeconfig"), kubeconfig.to_string()).unwrap();
        Self { backend, launch, folder }
    }

    fn kubeconfig(&self) -> String {
        self.folder.join("access.kubeconfig").to_string_lossy().into_owned()
    }

    /// Starts a server with these flags, whose webhook decides after RBAC.
    async fn behind_roles(launch: Launch, more: &[&str]) -> (Portico, Backend) {
        let Self { backend, launch, folder } = Self::prepare(launch).await;
        let file = folder.join("access.kubeconfig").to_string_lossy().into_owned();
        let flags = ["--authorization-mode", "RBAC,Webhook", "--authorization-webhook-config-file", &file];
        (launch.args(&flags).args(more).start().await, backend)
    }
}

/// Returns the reviews that a backend received, except those for the server itself.
fn reviews(backend: &Backend) -> Vec<Value> {
    let read = |seen: portico_tests::ReceivedRequest| serde_json::from_slice::<Value>(&seen.body).unwrap();
    let reviews = backend.requests().into_iter().map(read);
    reviews
        .filter(|review| !review["spec"]["user"].as_str().unwrap_or_default().starts_with("system:"))
        .collect()
}

fn forbidden(answer: &FullResponse, why: &str) {
    let body = answer.status_body(403, "Forbidden");
    let message = body["message"].as_str().unwrap();
    assert!(message.ends_with(why), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_decides_after_rbac_and_results_are_cached() {
    let (portico, backend) =
        WebhookSetup::behind_roles(Launch::new(), &["--authorization-webhook-version", "v1"]).await;
    let (alice, bob) = (portico.admin().as_user("alice"), portico.admin().as_user("bob"));
    let path = format!("{CONFIG_MAPS}?labelSelector=a%20in%20(b)&fieldSelector=metadata.name%3Dx");
    for _ in 0..2 {
        assert_eq!(alice.get(&path).await.status, 200);
        forbidden(&bob.get(CONFIG_MAPS).await, "in the namespace \"default\": who is that?");
        forbidden(&alice.get(SECRETS).await, ": no secrets");
    }
    let reviews = reviews(&backend);
    assert_eq!(reviews.len(), 3, "answers are remembered: {reviews:?}");
    let spec = json!({"resourceAttributes": {"namespace": "default", "verb": "list", "version": "v1", "resource": "configmaps", "name": "x",
            "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]},
            "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}},
        "user": "alice", "groups": ["dev", "system:authenticated"], "uid": "uid-alice"});
    assert_eq!((&reviews[0]["spec"], &reviews[0]["apiVersion"]), (&spec, &json!("authorization.k8s.io/v1")));
    assert_eq!(backend.last_request().all("authorization"), ["Bearer known"]);
    assert_eq!(portico.admin().get(SECRETS).await.status, 200, "RBAC precedes the webhook");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_webhook_grants_nothing() {
    let flags = [
        "--authorization-webhook-cache-authorized-ttl",
        "0s",
        "--authorization-webhook-cache-unauthorized-ttl",
        "0s",
    ];
    let (portico, backend) = WebhookSetup::behind_roles(Launch::new(), &flags).await;
    let alice = portico.admin().as_user("alice");
    assert_eq!(alice.get(CONFIG_MAPS).await.status, 200);
    assert_eq!(reviews(&backend)[0]["spec"]["group"], json!(["dev", "system:authenticated"]), "v1beta1");
    backend.set_behavior(Behavior::Code(403));
    let refused = alice.get(CONFIG_MAPS).await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(
        refused.text().starts_with("Internal Server Error: \"/api/v1/namespaces/default/configmaps\": "),
        "{}",
        refused.text()
    );
    assert_eq!(portico.admin().get(CONFIG_MAPS).await.status, 200, "whom roles allow");
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "alice", "resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let review =
        portico.admin().post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.json();
    assert_eq!(review["status"]["allowed"], false, "{review}");
    assert!(review["status"]["evaluationError"].is_string(), "{review}");
    backend.set_behavior(Behavior::Normal);
    assert_eq!(alice.get(CONFIG_MAPS).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn impersonation_and_policy_checks_use_webhooks() {
    let (portico, _backend) = WebhookSetup::behind_roles(Launch::new(), &[]).await;
    let alice = portico.admin().as_user("alice");
    let as_carol =
        Request::get(CONFIG_MAPS).header("impersonate-user", "carol").body(Full::default()).unwrap();
    let refused = alice.fetch(as_carol).await.unwrap();
    forbidden(&refused, "in the namespace \"default\": who is that?");
    assert!(refused.text().contains("User \\\"carol\\\""), "{}", refused.text());
    let own = |name: &str, expression: &str| {
        json!({"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": expression}]}})
    };
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let webhook_check = "authorizer.group('x').resource('pods').check('create').allowed() && !authorizer.group('').resource('secrets').check('get').allowed()";
    let created = portico.admin().post(policies, &own("asks", webhook_check)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let binding =
        json!({"metadata": {"name": "asks"}, "spec": {"policyName": "asks", "validationActions": ["Deny"]}});
    let created = portico
        .admin()
        .post("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", &binding)
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    let map = json!({"metadata": {"generateName": "m-"}});
    eventually("the policy refuses a write by the administrator", || async {
        let answer = portico.admin().post(CONFIG_MAPS, &map).await;
        if answer.status == 422 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let created = alice.post(CONFIG_MAPS, &map).await;
    assert_eq!(created.status, 201, "the webhook authorizes the request: {}", created.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_control_service_only_cached_decisions_hold() {
    let proxied = Backend::start("away.example.com").await;
    let (mut server, _backend) = WebhookSetup::behind_roles(Launch::server(), &[]).await;
    let facade = Launch::facade(&server).start().await;
    let created = facade.admin().post(API_SERVICES, &proxied.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let alice = facade.admin().as_user("alice");
    let path = proxied.path("/flunders");
    eventually("the request that the webhook allows reaches the backend", || async {
        let answer = alice.get(&path).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    server.kill();
    assert_eq!(alice.get(&path).await.status, 200, "that was allowed");
    let new = alice.get(&proxied.path("/flunders/one")).await;
    assert_eq!(new.status, 503, "no decision is cached for this request: {}", new.text());
    let other = facade.admin().as_user("bob").get(&path).await;
    assert_eq!(other.status, 503, "{}", other.text());
    assert_eq!(
        facade.admin().get(&proxied.path("/flunders/one")).await.status,
        200,
        "the facade evaluates RBAC itself"
    );
}

fn configuration(kubeconfig: &str, condition: &str) -> String {
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": [
        {"type": "Webhook", "name": "first.example.com", "webhook": {
            "timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": "Deny", "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
            "matchConditions": [{"expression": condition}]}},
        {"type": "RBAC", "name": "rbac"}]})
    .to_string()
}

async fn configured(condition: &str) -> (Portico, Backend, std::path::PathBuf, String) {
    let decider = WebhookSetup::prepare(Launch::new()).await;
    let (file, kubeconfig) = (decider.folder.join("authorization.json"), decider.kubeconfig());
    std::fs::write(&file, configuration(&kubeconfig, condition)).unwrap();
    let launch = decider.launch.args(&["--authorization-config", file.to_str().unwrap()]);
    (launch.start().await, decider.backend, file, kubeconfig)
}

async fn metrics(portico: &Portico, words: &str) -> Result<(), String> {
    let text = portico.admin().get("/metrics").await.text();
    let authorization_metrics =
        text.lines().filter(|line| line.contains("authorization")).collect::<Vec<_>>().join("\n");
    if text.contains(words) { Ok(()) } else { Err(authorization_metrics) }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_configuration_is_used_and_reloaded() {
    let of_alice = "request.user == 'alice' && has(request.resourceAttributes)";
    let (portico, backend, file, kubeconfig) = configured(of_alice).await;
    let (alice, carol) = (portico.admin().as_user("alice"), portico.admin().as_user("carol"));
    assert_eq!(alice.get(CONFIG_MAPS).await.status, 200);
    forbidden(&carol.get(CONFIG_MAPS).await, "in the namespace \"default\"");
    assert_eq!(reviews(&backend).len(), 1, "the match conditions exclude carol");
    backend.set_behavior(Behavior::Code(403));
    let refused = alice.get(SECRETS).await;
    assert_eq!(refused.status, 500, "failurePolicy Deny: {}", refused.text());
    backend.set_behavior(Behavior::Normal);
    for words in [
        r#"apiserver_authorization_decisions_total{type="Webhook",name="first.example.com",decision="allowed"} 1"#,
        r#"apiserver_authorization_match_condition_exclusions_total{type="Webhook",name="first.example.com"}"#,
        r#"apiserver_authorization_webhook_evaluations_total{name="first.example.com",result="error"} 1"#,
        "apiserver_authorization_config_controller_last_config_info{",
    ] {
        metrics(&portico, words).await.unwrap();
    }
    std::fs::write(&file, configuration(&kubeconfig, "1 + 1")).unwrap();
    portico.signal(Signal::HUP);
    let failed = r#"apiserver_authorization_config_controller_automatic_reloads_total{status="failure","#;
    eventually("the failed reload is counted", || metrics(&portico, failed)).await;
    assert_eq!(alice.get(CONFIG_MAPS).await.status, 200, "the previous configuration stays in effect");
    std::fs::write(&file, configuration(&kubeconfig, "request.user == 'nobody'")).unwrap();
    portico.signal(Signal::HUP);
    eventually("the changed configuration is in effect", || async {
        let answer = alice.get(CONFIG_MAPS).await;
        if answer.status == 403 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let changed = r#"apiserver_authorization_config_controller_automatic_reloads_total{status="success","#;
    metrics(&portico, changed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn abac_policies_decide() {
    let (launch, folder) = Launch::new().prepare_folder();
    let file = folder.join("policies");
    let policy = json!({"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy",
        "spec": {"user": "alice", "namespace": "default", "resource": "configmaps", "readonly": true}});
    std::fs::write(&file, format!("# alice reads\n{policy}\n")).unwrap();
    let flags = ["--authorization-mode", "ABAC", "--authorization-policy-file", file.to_str().unwrap()];
    let portico = launch.args(&flags).start().await;
    let alice: Http = portico.admin().as_user("alice");
    assert_eq!(alice.get(CONFIG_MAPS).await.status, 200);
    let written = alice.post(CONFIG_MAPS, &json!({"metadata": {"name": "m"}})).await;
    forbidden(&written, ": No policy matched.");
    forbidden(&alice.get("/api/v1/namespaces/kube-system/configmaps").await, ": No policy matched.");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_authorizers_are_refused_at_the_start() {
    let (_, folder) = Launch::new().prepare_folder();
    let file = folder.join("x");
    let path = file.to_str().unwrap().to_owned();
    for (args, content, words) in [
        (vec!["--authorization-mode", "Webhook"], "", "Webhook's authorization config file not passed"),
        (vec!["--authorization-mode", "ABAC"], "", "ABAC's authorization policy file not passed"),
        (vec!["--authorization-policy-file", &path], "", "without mode ABAC"),
        (vec!["--authorization-webhook-config-file", &path], "", "without mode Webhook"),
        (vec!["--authorization-webhook-version", "v2"], "", "supported versions are \"v1\", \"v1beta1\""),
        (
            vec!["--authorization-config", &path, "--authorization-mode", "RBAC"],
            "",
            "can not be specified when",
        ),
        (vec!["--authorization-config", &path], "{}", "Object 'Kind' is missing"),
        (vec!["--authorization-mode", "ABAC", "--authorization-policy-file", &path], "{", "line 1"),
        (
            vec!["--authorization-mode", "Webhook", "--authorization-webhook-config-file", &path],
            "{}",
            "kubeconfig has no context",
        ),
    ] {
        let (launch, _folder) = Launch::new().args(&args).prepare_folder();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, content).unwrap();
        let (code, _, err) = launch.run().await;
        assert!(err.contains(words), "{args:?}: {err}");
        assert_eq!((code, err.lines().count()), (Some(2), 1), "{args:?}: {err}");
    }
}

/// Grants alice these rules in all namespaces, or in one.
async fn allow_alice(admin: &Http, name: &str, namespace: Option<&str>, rules: Value) {
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let (path, kind) = match namespace {
        Some(namespace) => (format!("{group}/namespaces/{namespace}"), "Role"),
        None => (group.to_owned(), "ClusterRole"),
    };
    let (kinds, bindings) = match namespace {
        Some(_) => ("roles", "rolebindings"),
        None => ("clusterroles", "clusterrolebindings"),
    };
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let alice = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"});
    let binding = json!({"metadata": {"name": name}, "roleRef": reference, "subjects": [alice]});
    for (resource, object) in [(kinds, role), (bindings, binding)] {
        let created = admin.post(&format!("{path}/{resource}"), &object).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn escalate_applies_to_roles_created_by_put_or_apply() {
    let portico = Portico::start().await;
    let (admin, alice) = (portico.admin(), portico.anonymous().as_user("alice"));
    let rule = |verbs: Value, names: Value| json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": verbs, "resourceNames": names});
    let rules = json!([
        rule(json!(["create", "update", "patch"]), json!([])),
        rule(json!(["escalate"]), json!(["put", "applied"]))
    ]);
    allow_alice(&admin, "writer", None, rules).await;
    let role = |name: &str| {
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    };
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let apply = async |name: &str| {
        let patch = Request::patch(format!("{roles}/{name}?fieldManager=alice"))
            .header("content-type", "application/apply-patch+yaml")
            .body(Full::from(role(name).to_string()))
            .unwrap();
        alice.fetch(patch).await.unwrap().status
    };
    assert_eq!(alice.put(&format!("{roles}/put"), &role("put")).await.status, 201);
    assert_eq!(apply("applied").await, 201);
    assert_eq!(alice.put(&format!("{roles}/other"), &role("other")).await.status, 403);
    assert_eq!(apply("other").await, 403);
    assert_eq!(admin.delete(&format!("{roles}/put")).await.status, 200);
    assert_eq!(alice.post(roles, &role("put")).await.status, 403, "the path of a POST contains no name");
}

const READ_MAP: &str = "does not have \"get\" permission on the object referenced by paramRef";
const READ_ALL: &str = "permission for all groups, versions and resources";

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_policies_and_bindings_must_be_able_to_read_the_parameters() {
    let portico = Portico::start().await;
    let (admin, alice) = (portico.admin(), portico.anonymous().as_user("alice"));
    let all = json!([{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]);
    allow_alice(&admin, "writer", None, all).await;
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    let path = |resource: &str| format!("/apis/admissionregistration.k8s.io/v1/{resource}");
    let policy = |name: &str, version: &str, kind: &str| {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
        let spec = json!({"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}],
            "paramKind": {"apiVersion": version, "kind": kind}});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let binding = |policy: &str, params: Value| {
        let mut reference = json!({"namespace": "default", "parameterNotFoundAction": "Deny"});
        reference.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        let spec = json!({"policyName": policy, "validationActions": ["Warn"], "paramRef": reference});
        json!({"metadata": {"generateName": "b-"}, "spec": spec})
    };
    let refused = async |resource: &str, object: Value, why: &str| {
        let refused = alice.post(&path(resource), &object).await;
        let message = refused.status_body(422, "Invalid")["message"].as_str().unwrap().to_owned();
        assert!(message.ends_with(why), "{message}");
        assert!(message.contains("user &{alice uid-alice [dev system:authenticated] map[]} "), "{message}");
    };
    let (one, some) = (json!({"name": "limit"}), json!({"selector": {"matchLabels": {"a": "b"}}}));
    refused(
        policies,
        policy("maps", "v1", "ConfigMap"),
        "must have \"get\" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)",
    )
    .await;
    for (name, version, kind) in [("maps", "v1", "ConfigMap"), ("unknown", "x.y/v1", "Z")] {
        assert_eq!(admin.post(&path(policies), &policy(name, version, kind)).await.status, 201);
    }
    refused(bindings, binding("maps", one.clone()), READ_MAP).await;
    refused(bindings, binding("maps", some.clone()), &READ_MAP.replace("get", "list")).await;
    refused(bindings, binding("unknown", one.clone()), READ_ALL).await;
    refused(bindings, binding("missing", one.clone()), READ_ALL).await;

    let get = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["limit"], "verbs": ["get"]}]);
    allow_alice(&admin, "limit", Some("default"), get).await;
    let bound = alice.post(&path(bindings), &binding("maps", one.clone())).await;
    assert_eq!(bound.status, 201, "{}", bound.text());
    refused(bindings, binding("maps", json!({"name": "other"})), READ_MAP).await;
    refused(bindings, binding("maps", some.clone()), &READ_MAP.replace("get", "list")).await;
    let bound = admin.post(&path(bindings), &binding("maps", some)).await.json();
    let bound = format!("{}/{}", path(bindings), bound["metadata"]["name"].as_str().unwrap());
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(alice.merge(&bound, &labels).await.status, 422, "escalation is checked on each update");
    assert_eq!(admin.delete(&bound).await.status, 200);
}
