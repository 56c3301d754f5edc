//! Reviews that a facade sends on its own behalf: webhooks and policies do not see them, but do see reviews of clients.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_proto::client::{Client, Credentials};
use portico_tests::http::Http;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::token_issuer::TokenIssuer;
use portico_tests::{Backend, Launch, Portico, eventually};
use serde_json::{Value, json};

use crate::oidc;

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/robot";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// A URL without a listener.
const DEAD: &str = "https://127.0.0.1:1/";

/// A facade, its control service (possibly in the same process), and issuers of tokens.
struct Setup {
    facade: Portico,
    server: Option<Portico>,
    admin: Http,
    issuer: TokenIssuer,
}

/// New credentials, which no facade has cached.
struct NewCredentials {
    tokens: Vec<String>,
    for_grpc: String,
    /// Name of a ConfigMap that no test has used yet.
    map: String,
}

/// Returns flags of a control service that authenticates tokens of service accounts, bootstrap tokens and tokens of an issuer,
/// and that uses an authorization file, so that facades ask it for decisions.
fn flags(folder: &Path, issuer: &TokenIssuer) -> Vec<String> {
    let (authentication, policies) = (folder.join("authentication.yaml"), folder.join("policies"));
    oidc::write(&authentication, &[oidc::jwt(issuer, oidc::by_sub())], None);
    let policy = json!({"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy",
        "spec": {"user": "*", "namespace": "default", "resource": "configmaps", "readonly": true}});
    std::fs::write(&policies, format!("{policy}\n")).unwrap();
    let flag = |name: &str, file: &Path| [name.to_owned(), file.to_str().unwrap().to_owned()];
    let mut flags = vec!["--enable-bootstrap-token-auth".to_owned()];
    flags.extend(["--authorization-mode".to_owned(), "RBAC,ABAC".to_owned()]);
    flags.extend(flag("--authorization-policy-file", &policies));
    flags.extend(flag("--authentication-config", &authentication));
    flags
}

impl Setup {
    async fn start(split: bool) -> Self {
        let issuer = TokenIssuer::start(oidc::key()).await;
        let (launch, folder) = if split { Launch::server() } else { Launch::new() }.prepare_folder();
        let flags = flags(&folder, &issuer);
        let first = launch.args(&flags.iter().map(String::as_str).collect::<Vec<_>>()).start().await;
        let (facade, server) = match split {
            true => (Launch::facade(&first).start().await, Some(first)),
            false => (first, None),
        };
        let setup = Self { admin: facade.admin(), facade, server, issuer };
        let token = setup.issuer.token(&oidc::claims(json!({"sub": "first"})));
        for (what, http, path) in [
            ("the facade serves objects", setup.admin.clone(), CONFIG_MAPS),
            ("the issuer's keys are fetched", setup.facade.anonymous().with_token(&token), "/api"),
        ] {
            eventually(what, || async {
                let answer = http.get(path).await;
                if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
            })
            .await;
        }
        setup.post(&parent(ACCOUNT), &named("ServiceAccount", "robot")).await;
        setup
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let created = self.admin.post(path, body).await;
        assert_eq!(created.status, 201, "{path}: {}", created.text());
        created.json()
    }

    /// Creates tokens of each kind; `id` has six letters.
    async fn new_credentials(&self, id: &str) -> NewCredentials {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let account = async || {
            let issued = self.post(&format!("{ACCOUNT}/token"), &request).await;
            issued["status"]["token"].as_str().unwrap().to_owned()
        };
        let data = json!({"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"});
        let mut secret = named("Secret", &format!("bootstrap-token-{id}"));
        (secret["type"], secret["stringData"]) = ("bootstrap.kubernetes.io/token".into(), data);
        self.post("/api/v1/namespaces/kube-system/secrets", &secret).await;
        let jane = self.issuer.token(&oidc::claims(json!({"sub": format!("jane-{id}")})));
        let legacy = self.secret_token(id).await;
        let tokens = vec![account().await, format!("{id}.0123456789abcdef"), jane, legacy];
        NewCredentials { tokens, for_grpc: account().await, map: id.to_owned() }
    }

    /// Creates a token in a Secret, which is written at each use.
    async fn secret_token(&self, id: &str) -> String {
        let mut secret = named("Secret", &format!("legacy-{id}"));
        secret["type"] = "kubernetes.io/service-account-token".into();
        secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "robot"});
        self.post(SECRETS, &secret).await;
        eventually("the Secret has a token", || async {
            let secret = self.admin.get(&format!("{SECRETS}/legacy-{id}")).await.json();
            let token = secret["data"]["token"].as_str().ok_or_else(|| secret.to_string())?;
            Ok::<_, String>(String::from_utf8(STANDARD.decode(token).unwrap()).unwrap())
        })
        .await
    }

    /// Checks that callers are authenticated by each token, and authorized.
    async fn check_access(&self, fresh: &NewCredentials, when: &str) {
        for token in &fresh.tokens {
            let answer = self.facade.anonymous().with_token(token).get("/api").await;
            assert_eq!(answer.status, 200, "{when}: {token}: {}", answer.text());
        }
        let response = self.admin.as_user("alice").get(&format!("{CONFIG_MAPS}/{}", fresh.map)).await;
        assert_eq!(response.status, 404, "{when}: {}", response.text());
        let server = self.server.as_ref().unwrap_or(&self.facade);
        let connection = server.control_with(Credentials::Token(fresh.for_grpc.clone()));
        let request = portico_proto::apiregistration::GetRequest { name: "v1.".into(), ..Default::default() };
        let refused = Client::connect(&connection).unwrap().api_services().get(request).await.unwrap_err();
        assert!(refused.message().contains("system:serviceaccount:default:robot"), "{when}: {refused}");
    }

    /// Writes a validating and a mutating configuration.
    async fn configure(&self, name: &str, url: &str, ca: Option<&str>) {
        let webhook = json!({"name": "all.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}],
            "clientConfig": {"url": url, "caBundle": ca.map(|ca| STANDARD.encode(ca))}});
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            let mut object = named(kind, name);
            object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
            object["webhooks"] = json!([webhook]);
            self.post(&format!("{REGISTRATION}/{}s", kind.to_lowercase()), &object).await;
        }
    }

    async fn remove(&self, resource: &str, name: &str) {
        let deleted = self.admin.delete(&format!("{REGISTRATION}/{resource}/{name}")).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
    }

    /// Writes policies that deny every create, and policies that fail.
    async fn deny_everything(&self) {
        let rules = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["CREATE"]}]});
        let broken = json!({"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/none'}]"}});
        for (kind, mut spec) in [
            ("MutatingAdmissionPolicy", json!({"mutations": [broken], "reinvocationPolicy": "Never"})),
            ("ValidatingAdmissionPolicy", json!({"validations": [{"expression": "false"}]})),
        ] {
            (spec["matchConstraints"], spec["failurePolicy"]) = (rules.clone(), "Fail".into());
            let mut bound = json!({"policyName": "all"});
            if kind.starts_with("Validating") {
                bound["validationActions"] = json!(["Deny"]);
            }
            let resource = format!("{}ies", kind.to_lowercase().trim_end_matches('y'));
            let written = [(resource, kind.to_owned(), spec)];
            let binding = (format!("{}bindings", kind.to_lowercase()), format!("{kind}Binding"), bound);
            for (resource, kind, spec) in written.into_iter().chain([binding]) {
                let mut object = named(&kind, "all");
                (object["apiVersion"], object["spec"]) = ("admissionregistration.k8s.io/v1".into(), spec);
                self.post(&format!("{REGISTRATION}/{resource}"), &object).await;
            }
        }
    }

    /// Checks that clients can still create self reviews while policies deny everything, as upstream.
    async fn check_self_reviews(&self) {
        self.post(REVIEWS, &token_review("t")).await;
        let spec = json!({"user": "x", "nonResourceAttributes": {"verb": "get", "path": "/"}});
        self.post(ACCESS_REVIEWS, &review("authorization.k8s.io/v1", "SubjectAccessReview", spec)).await;
    }

    async fn check_create_refused(&self, code: u16) {
        let refused = self.admin.post(CONFIG_MAPS, &named("ConfigMap", "new")).await;
        assert_eq!(refused.status, code, "{}", refused.text());
    }
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').unwrap().0.to_owned()
}

fn named(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}

fn review(version: &str, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "spec": spec})
}

fn token_review(token: &str) -> Value {
    review("authentication.k8s.io/v1", "TokenReview", json!({"token": token}))
}

async fn check_independence_of_admission(split: bool) {
    let setup = Setup::start(split).await;
    let (denied, dead, seen) = (
        setup.new_credentials("denied").await,
        setup.new_credentials("isdead").await,
        setup.new_credentials("isseen").await,
    );

    setup.deny_everything().await;
    setup.check_create_refused(403).await;
    setup.check_access(&denied, "policies deny everything").await;
    setup.check_self_reviews().await;
    setup.remove("mutatingadmissionpolicybindings", "all").await;
    setup.check_create_refused(422).await;
    setup.remove("validatingadmissionpolicybindings", "all").await;

    setup.configure("dead", DEAD, None).await;
    setup.check_create_refused(500).await;
    setup.check_access(&dead, "a webhook is dead").await;
    let noted = setup.admin.get(&format!("{SECRETS}/legacy-{}", dead.map)).await.json();
    assert!(noted["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"].is_string(), "{noted}");
    setup.remove("mutatingwebhookconfigurations", "dead").await;
    setup.remove("validatingwebhookconfigurations", "dead").await;

    let hooks = Backend::with_names("hooks", &["127.0.0.1"]).await;
    setup.configure("seen", &format!("{}/admission/allow", hooks.url()), Some(&hooks.ca)).await;
    setup.check_access(&seen, "a webhook looks on").await;
    let kinds = || -> Vec<String> {
        let kind = |seen: portico_tests::ReceivedRequest| {
            let review: Value = serde_json::from_slice(&seen.body).unwrap();
            review["request"]["kind"]["kind"].as_str().unwrap().to_owned()
        };
        hooks.requests().into_iter().map(kind).filter(|kind| kind.ends_with("Review")).collect()
    };
    assert_eq!(kinds(), [""; 0], "a facade's own reviews were sent to a webhook");
    for token in seen.tokens.iter().chain([&seen.for_grpc]) {
        let has_token = |request: portico_tests::ReceivedRequest| {
            String::from_utf8_lossy(&request.body).contains(token.as_str())
        };
        assert!(!hooks.requests().into_iter().any(has_token), "a webhook was sent {token}");
    }
    setup.check_self_reviews().await;
    assert_eq!(kinds(), ["TokenReview", "TokenReview", "SubjectAccessReview", "SubjectAccessReview"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_in_one_process_are_independent_of_admission() {
    check_independence_of_admission(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_of_a_separate_facade_are_independent_of_admission() {
    check_independence_of_admission(true).await;
}
