//! Signs the ConfigMap `kube-public/cluster-info` with each bootstrap token (`bootstrap-signer-controller`), so that a new
//! node that knows its token can trust the CA in the ConfigMap.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{ListOptions, LogEntry, ObjectPart, ObjectRef, Registry, UpdateOptions};

use super::token::{self, is_token, secrets};
use crate::account::service_account_context;
use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "bootstrap-signer-controller";

const USER: &str = "bootstrap-signer";
const WORKERS: usize = 1;
const NAMESPACE: &str = "kube-public";
const CONFIG_MAP: &str = "cluster-info";
/// Key of the signed content in the ConfigMap.
const CONTENT: &str = "kubeconfig";
/// Prefix of a signature's key, before the ID of the token.
const SIGNATURE_PREFIX: &str = "jws-kubeconfig-";

fn config_maps() -> GroupResource {
    GroupResource::new("", "configmaps")
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct BootstrapSigner {
    queue: WorkQueue<()>,
}

impl BootstrapSigner {
    /// Creates the controller.
    #[must_use]
    pub fn new(metrics: &QueueMetrics) -> Self {
        Self { queue: WorkQueue::with_metrics("bootstrap_signer_queue", BackoffPolicy::CONTROLLER, metrics) }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let registry = registry.clone();
        run_workers(tasks, NAME, WORKERS, self.queue.clone(), move |()| {
            let registry = registry.clone();
            async move { reconcile(&registry).await.map(|()| ReconcileOutcome::Done) }
        });
    }
}

async fn reconcile(registry: &Registry) -> Result<(), Box<Status>> {
    let (namespace, name) = (NAMESPACE.to_owned(), CONFIG_MAP.to_owned());
    let object_ref = ObjectRef { resource: config_maps(), namespace, name };
    let Some(stored) = registry.get_stored(&object_ref).await? else { return Ok(()) };
    let secrets = registry.list(&secrets(), token::NAMESPACE, &ListOptions::default()).await?.items;
    let now = Timestamp::now();
    let tokens = secrets.iter().map(|secret| secret.object()).filter(|secret| is_token(secret));
    let tokens = tokens.filter_map(|secret| token::signing_credentials(secret, now)).collect();
    let Some(signed) = signed(stored.object(), &tokens) else { return Ok(()) };
    let (context, options) = (service_account_context(USER), UpdateOptions::default());
    let written = registry.update(&context, &config_maps(), ObjectPart::Main, signed, &options).await;
    // An event delivers the newer state.
    ignore_reasons(written, &[Reason::NotFound, Reason::Conflict])
}

/// Returns the ConfigMap with the signatures of exactly these tokens (secrets by ID). `None` if the signatures are up to date
/// or the content to sign is missing.
fn signed(config_map: &Object, tokens: &BTreeMap<String, String>) -> Option<Object> {
    let data = config_map.at(&["data"]);
    let content = data.entry_str(CONTENT)?;
    let current: BTreeMap<String, String> = data
        .entries()
        .filter(|(key, _)| key.starts_with(SIGNATURE_PREFIX))
        .map(|(key, value)| (key.to_owned(), value.str().to_owned()))
        .collect();
    let signatures: BTreeMap<String, String> = tokens
        .iter()
        .map(|(id, secret)| (format!("{SIGNATURE_PREFIX}{id}"), signature(content, id, secret)))
        .collect();
    if current == signatures {
        return None;
    }
    let mut signed = config_map.clone();
    for key in current.keys() {
        signed.remove(&["data", key]);
    }
    for (key, value) in &signatures {
        signed.set(&["data", key], value);
    }
    Some(signed)
}

/// Returns a JWS (HS256) with detached content (upstream's `ComputeDetachedSignature`).
fn signature(content: &str, id: &str, secret: &str) -> String {
    // An ID consists of letters and digits: escaping is not needed.
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{header}.{}", URL_SAFE_NO_PAD.encode(content)).as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(tag))
}

impl Listener for BootstrapSigner {
    fn resync<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.queue.add(());
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        let is_config_map = *change.resource() == config_maps()
            && change.namespace() == NAMESPACE
            && change.name() == CONFIG_MAP;
        let is_secret = *change.resource() == secrets() && change.namespace() == token::NAMESPACE;
        if is_config_map || is_secret {
            self.queue.add(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example of upstream's `jws_test.go`.
    #[test]
    fn a_signature_is_the_one_that_kubeadm_checks() {
        let expected =
            "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";
        let content = "Hello from the other side. I must have called a thousand times.";
        assert_eq!(signature(content, "joshua", "my voice is my passcode"), expected);
    }

    #[test]
    fn signatures_follow_the_tokens() {
        let mut config_map = Object::default();
        let tokens = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), "s".to_owned())).collect();
        assert_eq!(signed(&config_map, &tokens(&["abcdef"])), None, "no content to sign");
        config_map.set(&["data", CONTENT], "x");
        config_map.set(&["data", "other"], "y");
        let one = signed(&config_map, &tokens(&["abcdef"])).unwrap();
        assert!(one.at(&["data"]).entry_str("jws-kubeconfig-abcdef").is_some());
        assert_eq!(signed(&one, &tokens(&["abcdef"])), None);
        let two = signed(&one, &tokens(&["000000"])).unwrap();
        assert_eq!(two.at(&["data"]).entries().count(), 3);
        assert_eq!(signed(&two, &BTreeMap::new()), Some(config_map));
    }
}
