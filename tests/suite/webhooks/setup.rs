//! A server, a webhook server, and configurations of its webhooks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Launch, Portico};
use serde_json::{Value, json};

pub const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// Kinds of configurations.
pub const MUTATING: (&str, &str) = ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
pub const VALIDATING: (&str, &str) = ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");

/// A process and a webhook server.
pub struct Setup {
    pub portico: Portico,
    pub admin: Http,
    pub hooks: Backend,
}

impl Setup {
    pub async fn start() -> Self {
        Self::launch(Launch::new()).await
    }

    pub async fn launch(launch: Launch) -> Self {
        let (portico, hooks) = (launch.start().await, Backend::with_names("hooks", &["127.0.0.1"]).await);
        let admin = portico.admin();
        Self { portico, admin, hooks }
    }

    /// Returns a webhook for ConfigMaps at a path of the webhook server, with the changes of `more`.
    pub fn webhook(&self, name: &str, path: &str, more: &Value) -> Value {
        let url = format!("{}/admission/{path}", self.hooks.url());
        let mut webhook = json!({
            "name": format!("{name}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": url, "caBundle": STANDARD.encode(&self.hooks.ca)},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            webhook[key] = value.clone();
        }
        webhook
    }

    pub async fn configure(&self, (kind, resource): (&str, &str), name: &str, webhooks: Vec<Value>) {
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "webhooks": webhooks});
        let created = self.admin.post(&format!("{CONFIGURATIONS}/{resource}"), &configuration).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }

    /// Configures one webhook with only a path.
    pub async fn configure_one(&self, kind: (&str, &str), path: &str, more: Value) {
        let webhook = self.webhook("hook", path, &more);
        self.configure(kind, "hooks", vec![webhook]).await;
    }

    pub async fn create(&self, name: &str) -> FullResponse {
        self.admin.post(CONFIG_MAPS, &map(name)).await
    }

    /// Returns the requests of users in the reviews so far, without those of the server's own start.
    pub fn reviews(&self) -> Vec<Value> {
        let review =
            |seen: portico_tests::ReceivedRequest| serde_json::from_slice::<Value>(&seen.body).unwrap();
        let requests = self.hooks.requests().into_iter().map(|seen| review(seen)["request"].take());
        let is_of_system = |request: &Value| {
            request["userInfo"]["username"].as_str().is_some_and(|name| name.starts_with("system:"))
        };
        requests.filter(|request| !is_of_system(request)).collect()
    }
}

/// Returns a ConfigMap.
pub fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}
