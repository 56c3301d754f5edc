//! Unreadable admission rules in the store: requests that they might refuse are refused, and the rules can be repaired.

use std::path::{Path, PathBuf};
use std::process::Command;

use http::Method;
use portico_tests::binary::binary;
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::PODS;
use portico_tests::{Launch, Portico, PostgresServer, report_skip, wait_until};
use serde_json::{Value, json};

const NOT_READY: &str = "not yet ready to handle request: ";
const GATE: &str = "AllowUnsafeMalformedObjectDeletion=true";
const UNSAFE: &str = r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":true}"#;
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A kind of rules: its resource, the folder of its path, an object of it, and a write that it might affect.
struct Rules {
    resource: &'static str,
    folder: &'static str,
    kind: &'static str,
    rest: Value,
    probe: fn() -> (&'static str, Value),
    /// True if no write is admitted without these rules.
    affects_all_writes: bool,
}

fn rules() -> Vec<Rules> {
    let configuration = |resource, kind, rest| Rules {
        resource,
        folder: GROUP,
        kind,
        rest,
        probe: config_map,
        affects_all_writes: true,
    };
    let of_secrets = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["CREATE"]}]);
    let constraints = json!({"resourceRules": of_secrets});
    let webhook = json!({"webhooks": [{"name": "rule.example.com", "failurePolicy": "Ignore", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/x"}, "rules": of_secrets}]});
    let change = json!({"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}});
    let validating =
        json!({"spec": {"matchConstraints": constraints, "validations": [{"expression": "true"}]}});
    let mutating = json!({"spec": {"matchConstraints": constraints, "mutations": [change], "reinvocationPolicy": "Never"}});
    let binding = json!({"spec": {"policyName": "rule", "validationActions": ["Deny"]}});
    let others = |resource, folder, kind, rest, probe| Rules {
        resource,
        folder,
        kind,
        rest,
        probe,
        affects_all_writes: false,
    };
    vec![
        configuration("validatingadmissionpolicies", "ValidatingAdmissionPolicy", validating),
        configuration("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", binding),
        configuration("mutatingadmissionpolicies", "MutatingAdmissionPolicy", mutating),
        configuration(
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
            json!({"spec": {"policyName": "rule"}}),
        ),
        configuration("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", webhook.clone()),
        configuration("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", webhook),
        others(
            "limitranges",
            "/api/v1/namespaces/ruled",
            "LimitRange",
            json!({"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}),
            claim,
        ),
        others(
            "resourcequotas",
            "/api/v1/namespaces/ruled",
            "ResourceQuota",
            json!({"spec": {"hard": {"secrets": "5"}}}),
            config_map,
        ),
        others("priorityclasses", "/apis/scheduling.k8s.io/v1", "PriorityClass", json!({"value": 7}), pod),
        others(
            "storageclasses",
            "/apis/storage.k8s.io/v1",
            "StorageClass",
            json!({"provisioner": "example.com/p"}),
            claim,
        ),
        others(
            "ingressclasses",
            "/apis/networking.k8s.io/v1",
            "IngressClass",
            json!({"spec": {"controller": "example.com/c"}}),
            ingress,
        ),
    ]
}

fn config_map() -> (&'static str, Value) {
    ("/api/v1/namespaces/ruled/configmaps", json!({"kind": "ConfigMap", "apiVersion": "v1"}))
}

fn claim() -> (&'static str, Value) {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}});
    let claim = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "spec": spec});
    ("/api/v1/namespaces/ruled/persistentvolumeclaims", claim)
}

fn pod() -> (&'static str, Value) {
    let spec = json!({"serviceAccountName": "own", "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": "i"}]});
    ("/api/v1/namespaces/ruled/pods", json!({"kind": "Pod", "apiVersion": "v1", "spec": spec}))
}

fn ingress() -> (&'static str, Value) {
    let spec = json!({"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}});
    let ingress = json!({"kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "spec": spec});
    ("/apis/networking.k8s.io/v1/namespaces/ruled/ingresses", ingress)
}

impl Rules {
    fn path(&self) -> String {
        format!("{}/{}", self.folder, self.resource)
    }

    /// Returns group and resource, as in encryption configurations.
    fn full_name(&self) -> String {
        match self.folder.strip_prefix("/apis/").and_then(|folder| folder.split('/').next()) {
            Some(group) => format!("{}.{group}", self.resource),
            None => self.resource.to_owned(),
        }
    }

    /// Text that only the stored object contains.
    fn mark(&self) -> String {
        format!("the-mark-of-{}-objects", self.resource)
    }

    async fn create(&self, http: &Http) {
        let version = self.folder.strip_prefix("/apis/").unwrap_or("v1");
        let mut object = self.rest.clone();
        object["kind"] = self.kind.into();
        object["apiVersion"] = version.into();
        object["metadata"] = json!({"name": "rule", "annotations": {"example.com/mark": self.mark()}});
        created(&http.post(&self.path(), &object).await);
    }

    /// Makes the write that the rules might affect.
    async fn write(&self, http: &Http) -> FullResponse {
        let (path, mut object) = (self.probe)();
        object["metadata"] = json!({"generateName": "probe-"});
        http.post(path, &object).await
    }

    /// Asserts that writes which the rules might affect are refused, that others succeed, and that `/readyz` reports it.
    async fn assert_refused(&self, http: &Http) {
        let refusal = self.write(http).await.status_body(403, "Forbidden");
        let message = refusal["message"].as_str().unwrap();
        let names = format!("{} {}rule cannot be read", self.full_name(), self.namespace());
        assert!(message.contains(NOT_READY) && message.contains(&names), "{}: {message}", self.resource);
        assert_eq!(http.get("/api/v1/configmaps").await.status, 200);
        let ready = http.get("/readyz?verbose").await;
        let is_named = ready.text().contains("[-]admission-rules failed");
        assert_eq!((ready.status == 500, is_named), (self.affects_all_writes, self.affects_all_writes));
        let elsewhere =
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generateName": "probe-"}});
        let answer = http.post("/api/v1/namespaces/default/configmaps", &elsewhere).await;
        assert_eq!(answer.status == 201, !self.affects_all_writes, "{}: {}", self.resource, answer.text());
        // Writes of rules are permitted.
        let other = json!({"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"generateName": "other-"}});
        created(&http.post(&format!("{GROUP}/validatingwebhookconfigurations?dryRun=All"), &other).await);
    }

    fn namespace(&self) -> &str {
        if self.folder.ends_with("/ruled") { "ruled/" } else { "" }
    }
}

fn created(answer: &FullResponse) {
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// Configures encryption of each kind of rules with the first key, but of this one with the second.
fn write_keys(file: &Path, other: Option<&str>) {
    let rule = |rules: &Rules| {
        let key = if other == Some(rules.resource) { 2 } else { 1 };
        format!("{{resources: [{}], providers: [{}]}}", rules.full_name(), provider(&[key]))
    };
    let rules: Vec<_> = rules().iter().map(rule).collect();
    write_config(file, &rules.join(", "));
}

fn provider(keys: &[u8]) -> String {
    let key = |key: &u8| {
        let secret = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [*key; 32]);
        format!("{{name: k{key}, secret: '{secret}'}}")
    };
    format!("{{secretbox: {{keys: [{}]}}}}", keys.iter().map(key).collect::<Vec<_>>().join(", "))
}

fn write_config(file: &Path, rules: &str) {
    let head = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources";
    std::fs::write(file, format!("{head}: [{rules}]\n")).unwrap();
}

fn encrypted(launch: Launch) -> (Launch, PathBuf) {
    let (launch, folder) = launch.prepare_folder();
    let file = folder.join("encryption.yaml");
    (launch.args(&["--encryption-provider-config", &file.to_string_lossy()]), file)
}

/// Creates one object of each kind of rules, and the objects that writes of tests need.
async fn create_all(http: &Http) {
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "ruled"}});
    created(&http.post("/api/v1/namespaces", &namespace).await);
    let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "own"}});
    created(&http.post("/api/v1/namespaces/ruled/serviceaccounts", &account).await);
    for rules in rules() {
        rules.create(http).await;
        created(&rules.write(http).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_without_a_key_refuse_writes_until_the_key_is_configured() {
    let (launch, file) = encrypted(Launch::new());
    write_keys(&file, None);
    let mut portico = launch.start().await;
    create_all(&portico.admin()).await;
    // The server's own priority classes would be encrypted as well.
    for rules in rules().into_iter().filter(|rules| rules.resource != "priorityclasses") {
        portico.stop().await;
        write_keys(&file, Some(rules.resource));
        portico.restart().await;
        rules.assert_refused(&portico.admin()).await;
    }
    portico.stop().await;
    write_keys(&file, None);
    portico.restart().await;
    for rules in rules() {
        created(&rules.write(&portico.admin()).await);
    }
    assert_eq!(portico.admin().get("/readyz").await.status, 200);
}

/// Changes a byte of each stored state of an object that contains a text.
fn damage(portico: &Portico, text: &str) {
    damage_byte(portico, text, 0, |byte| byte ^ 1);
}

/// Changes a byte of a text at every position in the database.
fn damage_byte(portico: &Portico, text: &str, offset: usize, change: impl Fn(u8) -> u8) {
    let file = portico.data().join("portico.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let found: Vec<_> =
        (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text.as_bytes())).collect();
    assert!(!found.is_empty(), "{text} is not in the file");
    found.into_iter().for_each(|at| bytes[at + offset] = change(bytes[at + offset]));
    std::fs::write(file, bytes).unwrap();
}

/// Changes of a byte of a key: to invalid UTF-8, and to another letter.
const DAMAGED_BYTES: [fn(u8) -> u8; 2] = [|_| 0xff, |byte| byte ^ 1];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_range_whose_namespace_is_damaged_may_limit_any() {
    for change in DAMAGED_BYTES {
        let mut portico = Portico::start().await;
        create_all(&portico.admin()).await;
        portico.stop().await;
        damage_byte(&portico, "ruled/rule", 0, change);
        portico.restart().await;
        let http = portico.admin();
        for rules in rules().into_iter().filter(|rules| rules.folder.ends_with("/ruled")) {
            let refusal = rules.write(&http).await.status_body(403, "Forbidden");
            let message = refusal["message"].as_str().unwrap();
            assert!(message.contains(NOT_READY), "{}: {message}", rules.resource);
        }
        let mut claim = claim().1;
        claim["metadata"] = json!({"generateName": "probe-"});
        let elsewhere = http.post("/api/v1/namespaces/default/persistentvolumeclaims", &claim).await;
        assert_eq!(elsewhere.status, 403, "{}", elsewhere.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_resource_name_blocks_writes_until_removed() {
    let mut portico = Portico::start().await;
    create_all(&portico.admin()).await;
    portico.stop().await;
    let stored = "admissionregistration.k8s.iovalidatingadmissionpolicies";
    damage_byte(&portico, stored, stored.len() - 1, |_| 0xff);
    portico.restart().await;
    let http = portico.admin();
    let refused = config_map();
    let mut object = refused.1.clone();
    object["metadata"] = json!({"generateName": "probe-"});
    let refusal = http.post(refused.0, &object).await.status_body(403, "Forbidden");
    let message = refusal["message"].as_str().unwrap();
    assert!(message.contains(NOT_READY) && message.contains("`portico doctor`"), "{message}");
    assert_eq!(http.get("/api/v1/configmaps").await.status, 200);
    let ready = http.get("/readyz?verbose").await;
    assert!(ready.status == 500 && ready.text().contains("[-]admission-rules failed"), "{}", ready.text());

    portico.stop().await;
    let mut doctor = Command::new(binary());
    let output = doctor.arg("doctor").arg(portico.data()).arg("--remove-unreadable").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    portico.restart().await;
    let http = portico.admin();
    created(&http.post(refused.0, &object).await);
    assert_eq!(http.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_rules_refuse_writes_until_deleted() {
    let mut portico = Launch::new().args(&["--feature-gates", GATE]).start().await;
    create_all(&portico.admin()).await;
    for rules in rules() {
        portico.stop().await;
        damage(&portico, &rules.mark());
        portico.restart().await;
        let http = portico.admin();
        rules.assert_refused(&http).await;
        let path = format!("{}/rule", rules.path());
        let deleted = http.request(Method::DELETE, &path, "application/json", UNSAFE).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        created(&rules.write(&http).await);
        wait_until("the check passes", || async { http.get("/readyz").await.status == 200 }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_budget_refuses_evictions() {
    check_eviction_refused(|portico| damage(portico, "the-mark-of-a-budget")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_whose_namespace_is_damaged_may_protect_any_pod() {
    for change in DAMAGED_BYTES {
        check_eviction_refused(|portico| damage_byte(portico, "default/the-budget", 0, change)).await;
    }
}

/// Checks evictions of a pod with a budget, which `damage` damages.
async fn check_eviction_refused(damage: impl Fn(&Portico)) {
    let mut portico = Portico::start().await;
    let http = portico.admin();
    let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "own"}});
    created(&http.post("/api/v1/namespaces/default/serviceaccounts", &account).await);
    let (_, mut object) = pod();
    object["metadata"] = json!({"name": "p", "labels": {"app": "a"}});
    created(&http.post(PODS, &object).await);
    let running = json!({"status": {"phase": "Running"}});
    assert_eq!(http.merge(&format!("{PODS}/p/status"), &running).await.status, 200);
    let budget = json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1",
        "metadata": {"name": "the-budget", "annotations": {"example.com/mark": "the-mark-of-a-budget"}},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    created(&http.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget).await);
    let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}});
    assert_eq!(http.post(&format!("{PODS}/p/eviction"), &eviction).await.status, 429);
    portico.stop().await;
    damage(&portico);
    portico.restart().await;
    let http = portico.admin();
    http.post(&format!("{PODS}/p/eviction"), &eviction).await.status_body(500, "StorageReadError");
    assert_eq!(http.get(&format!("{PODS}/p")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_parameter_is_not_treated_as_missing() {
    let mut portico = Portico::start().await;
    let http = portico.admin();
    let parameter = json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "p", "labels": {"app": "a"}, "annotations": {"example.com/mark": "the-mark-of-a-parameter"}}});
    created(&http.post("/api/v1/namespaces/default/configmaps", &parameter).await);
    let reference = json!({"namespace": "default", "selector": {"matchLabels": {"app": "a"}}, "parameterNotFoundAction": "Allow"});
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    refuse_all_by(&http, "secrets", json!({"paramKind": kind}), json!({"paramRef": reference})).await;
    let found = refusal(&http, "secrets", "Secret").await;
    assert!(found.contains("no secrets here"), "{found}");
    portico.stop().await;
    damage(&portico, "the-mark-of-a-parameter");
    portico.restart().await;
    let found = refusal(&portico.admin(), "secrets", "Secret").await;
    assert!(found.contains("cannot be read from the storage"), "{found}");
}

/// Writes a policy that refuses new objects of a resource, and its binding.
async fn refuse_all(http: &Http, resource: &str) {
    refuse_all_by(http, resource, json!({}), json!({})).await;
}

/// Writes the policy and the binding with further fields.
async fn refuse_all_by(http: &Http, resource: &str, policy: Value, more: Value) {
    let rule = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}]);
    let message = format!("no {resource} here");
    let mut spec = json!({"matchConstraints": {"resourceRules": rule}, "validations": [{"expression": "false", "message": message}]});
    spec.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
    let mut binding = json!({"policyName": resource, "validationActions": ["Deny"]});
    binding.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    for (resources, kind, spec) in [
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", spec),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", binding),
    ] {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": resource}, "spec": spec});
        created(&http.post(&format!("{GROUP}/{resources}"), &object).await);
    }
}

/// Returns the message of a refused POST of an object of this kind, or an empty one if the object was created.
async fn refusal(http: &Http, resource: &str, kind: &str) -> String {
    let object = json!({"kind": kind, "apiVersion": "v1", "metadata": {"generateName": "probe-"}});
    let answer = http.post(&format!("/api/v1/namespaces/default/{resource}"), &object).await;
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_encrypted_by_another_process_keep_their_last_state() {
    let Some(postgres) = PostgresServer::shared() else { return report_skip("no PostgreSQL") };
    let url = postgres.url(&postgres.create_database());
    let launch = |keys: &[u8]| {
        let (launch, file) = encrypted(Launch::new());
        let sealed = "{resources: ['*.admissionregistration.k8s.io'], providers: [";
        write_config(&file, &format!("{sealed}{}]}}", provider(keys)));
        let reload = "--encryption-provider-config-automatic-reload";
        (launch.args(&["--database-url", &url, reload]), file)
    };
    let (behind, file) = launch(&[1]);
    let behind = behind.start().await;
    let http = behind.admin();
    refuse_all(&http, "configmaps").await;
    let of_config_maps = "no configmaps here";
    let found = refusal(&http, "configmaps", "ConfigMap").await;
    assert!(found.contains(of_config_maps), "{found}");
    let ahead = launch(&[2, 1]).0.start().await;

    // The rule was read before it was encrypted with another key.
    let policies = format!("{GROUP}/validatingadmissionpolicies");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(ahead.admin().merge(&format!("{policies}/configmaps"), &labels).await.status, 200);
    let unreadable = async || http.get(&format!("{policies}/configmaps")).await.status == 500;
    wait_until("the policy is no longer readable", unreadable).await;
    let found = refusal(&http, "configmaps", "ConfigMap").await;
    assert!(found.contains(of_config_maps), "{found}");
    assert_eq!(refusal(&http, "secrets", "Secret").await, "");
    assert_eq!(http.get("/readyz").await.status, 200);

    // Another rule was never read.
    refuse_all(&ahead.admin(), "secrets").await;
    for (resource, kind) in [("secrets", "Secret"), ("configmaps", "ConfigMap"), ("endpoints", "Endpoints")] {
        let names = "validatingadmissionpolicies.admissionregistration.k8s.io secrets cannot be read";
        let found = refusal(&http, resource, kind).await;
        assert!(found.contains(NOT_READY) && found.contains(names), "{resource}: {found}");
    }
    let is_ready = async |expected: u16| http.get("/readyz").await.status == expected;
    wait_until("the check fails", || is_ready(500)).await;

    // With the key, all rules apply.
    let sealed = "{resources: ['*.admissionregistration.k8s.io'], providers: [";
    write_config(&file, &format!("{sealed}{}]}}", provider(&[2, 1])));
    wait_until("the check passes", || is_ready(200)).await;
    let found = refusal(&http, "secrets", "Secret").await;
    assert!(found.contains("no secrets here"), "{found}");
    assert_eq!(refusal(&http, "endpoints", "Endpoints").await, "");
}
