//! Results of admission in kubectl: warnings, denials and exit codes, for policies, webhooks and plugins.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_tests::tools::is_installed;
use portico_tests::{Backend, Portico};

use crate::kubectl::{prints, run};

/// A policy that warns for ConfigMaps with the key `old`, one that denies those with the key `bad`, and their bindings.
const POLICIES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-bad-keys}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations:
  - expression: "!has(object.data) || !('bad' in object.data)"
    message: the key "bad" is not wanted here
    reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-bad-keys}
spec: {policyName: no-bad-keys, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-old-keys}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations:
  - expression: "!has(object.data) || !('old' in object.data)"
    messageExpression: "'the key \"old\" of ' + object.metadata.name + ' goes away'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-old-keys}
spec: {policyName: no-old-keys, validationActions: [Warn]}
"#;

/// Applies a manifest; returns kubectl's output, its error output, and true if it succeeded.
fn apply(portico: &Portico, manifest: &str, more: &[&str]) -> (String, String, bool) {
    let file = portico.folder().join("manifest.yaml");
    std::fs::write(&file, manifest).unwrap();
    let mut args = vec!["apply", "-f", file.to_str().unwrap()];
    args.extend(more);
    let output = run(portico, &args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

/// Returns a ConfigMap with one key.
fn map(name: &str, key: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{{key}: x}}\n")
}

/// Returns a configuration of a webhook of this server for pods.
fn webhook(hooks: &Backend, kind: &str, path: &str) -> String {
    let (url, ca) = (format!("{}/admission/{path}", hooks.url()), STANDARD.encode(&hooks.ca));
    format!(
        r#"
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata: {{name: hooks}}
webhooks:
- name: hook.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {{url: "{url}", caBundle: "{ca}"}}
  rules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_warnings_and_denials_of_policies() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let (out, err, applied) = apply(&portico, POLICIES, &[]);
    assert!(applied && out.matches("created").count() == 4, "{out}{err}");

    let (out, err, applied) = apply(&portico, &map("fine", "good"), &[]);
    assert!(applied && out.contains("configmap/fine created") && err.is_empty(), "{out}{err}");

    let (out, err, applied) = apply(&portico, &map("aged", "old"), &[]);
    let warning = "Warning: Validation failed for ValidatingAdmissionPolicy 'no-old-keys' with binding 'no-old-keys': the key \"old\" of aged goes away";
    assert!(applied && out.contains("configmap/aged created") && err.contains(warning), "{out}{err}");

    let (out, err, applied) = apply(&portico, &map("wrong", "bad"), &[]);
    let denial = "(Forbidden): error when creating";
    let why = "configmaps \"wrong\" is forbidden: ValidatingAdmissionPolicy 'no-bad-keys' with binding 'no-bad-keys' denied request: the key \"bad\" is not wanted here";
    assert!(!applied && err.contains(denial) && err.contains(why), "{out}{err}");
    let (_, err, applied) = apply(&portico, &map("fine", "bad"), &["--server-side", "--dry-run=server"]);
    assert!(!applied && err.contains("denied request"), "a dry run of an update is validated, too: {err}");

    prints(&portico, &["delete", "validatingadmissionpolicybinding", "no-bad-keys"]);
    let (out, err, applied) = apply(&portico, &map("wrong", "bad"), &[]);
    assert!(applied && err.is_empty(), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_warnings_changes_and_denials_of_webhooks() {
    if !is_installed("kubectl") {
        return;
    }
    let hooks = Backend::with_names("hooks", &["127.0.0.1"]).await;
    let portico = Portico::start().await;
    prints(&portico, &["get", "mutatingwebhookconfigurations"]);
    for (kind, path) in
        [("MutatingWebhookConfiguration", "label/seen"), ("ValidatingWebhookConfiguration", "warn")]
    {
        let (out, err, applied) = apply(&portico, &webhook(&hooks, kind, path), &[]);
        assert!(applied, "{out}{err}");
    }
    let (out, err, applied) = apply(&portico, &map("one", "k"), &[]);
    assert!(applied && err.contains("Warning: are you sure?"), "{out}{err}");
    let labels = prints(&portico, &["get", "configmap", "one", "-o", "jsonpath={.metadata.labels}"]);
    assert!(labels.contains("seen"), "{labels}");

    let deny = webhook(&hooks, "ValidatingWebhookConfiguration", "deny");
    assert!(apply(&portico, &deny, &[]).2);
    let (out, err, applied) = apply(&portico, &map("two", "k"), &[]);
    let why = "admission webhook \"hook.example.com\" denied the request: not today";
    assert!(!applied && err.contains(why), "{out}{err}");
    assert!(!run(&portico, &["get", "configmap", "two"]).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_messages_of_pod_security_and_quotas() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    prints(&portico, &["create", "namespace", "guarded"]);
    let levels =
        ["pod-security.kubernetes.io/enforce=baseline", "pod-security.kubernetes.io/warn=restricted"];
    prints(&portico, &["label", "namespace", "guarded", levels[0], levels[1]]);
    let pod = |name: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: guarded}}\nspec: {{{more}containers: [{{name: c, image: i}}]}}\n"
        )
    };
    prints(&portico, &["wait", "--for=create", "serviceaccount/default", "-n", "guarded", "--timeout=20s"]);
    let (out, err, applied) = apply(&portico, &pod("plain", ""), &[]);
    let warning = "Warning: would violate PodSecurity \"restricted:latest\"";
    assert!(applied && err.contains(warning), "{out}{err}");
    let (out, err, applied) = apply(&portico, &pod("wild", "hostNetwork: true, "), &[]);
    let why = "pods \"wild\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces";
    assert!(!applied && err.contains(why), "{out}{err}");

    prints(&portico, &["create", "quota", "few", "--hard=configmaps=1", "-n", "guarded"]);
    // The ConfigMap that every namespace has is counted first.
    prints(
        &portico,
        &[
            "wait",
            "--for=jsonpath={.status.used.configmaps}=1",
            "quota/few",
            "-n",
            "guarded",
            "--timeout=20s",
        ],
    );
    let output = run(&portico, &["create", "configmap", "more", "-n", "guarded"]);
    let err = String::from_utf8_lossy(&output.stderr);
    let why = "exceeded quota: few, requested: configmaps=1, used: configmaps=1, limited: configmaps=1";
    assert!(!output.status.success() && err.contains(why), "{err}");
}
