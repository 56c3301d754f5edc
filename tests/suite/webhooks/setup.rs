//! A server, a webhook server, and configurations that lead from one to the other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_tests::http::{Answer, Http};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Launch, Portico};
use serde_json::{Value, json};

pub const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// The kinds of configurations.
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

    /// A webhook at a path of the server that is asked about ConfigMaps; `more` is laid over it.
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

    /// Configures one webhook, with nothing set but its path.
    pub async fn one(&self, kind: (&str, &str), path: &str, more: Value) {
        let webhook = self.webhook("hook", path, &more);
        self.configure(kind, "hooks", vec![webhook]).await;
    }

    pub async fn create(&self, name: &str) -> Answer {
        self.admin.post(CONFIG_MAPS, &map(name)).await
    }

    /// Requests of users in the reviews so far. The server's own ones, of its start, come at any time.
    pub fn reviews(&self) -> Vec<Value> {
        let review = |seen: portico_tests::Seen| serde_json::from_slice::<Value>(&seen.body).unwrap();
        let requests = self.hooks.seen().into_iter().map(|seen| review(seen)["request"].take());
        let is_of_system = |request: &Value| {
            request["userInfo"]["username"].as_str().is_some_and(|name| name.starts_with("system:"))
        };
        requests.filter(|request| !is_of_system(request)).collect()
    }
}

/// A ConfigMap.
pub fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}
