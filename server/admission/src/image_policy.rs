//! ImagePolicyWebhook: a configured backend decides whether the images of a pod may run.
//!
//! Upstream rules: plugin/pkg/admission/imagepolicy. No lock is held while the backend is called.

mod backend;
mod configuration;
mod review;
mod verdicts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use portico_machinery::Status;
use portico_registry::Objects;

use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};
pub use backend::ImageBackend;
pub(crate) use configuration::ImagePolicyConfiguration;
use review::Verdict;
use verdicts::Verdicts;

/// Exposed for fuzz targets, because responses of the backend are untrusted.
#[doc(hidden)]
pub use review::read_any;

/// Prefix of the keys of audit annotations.
const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
/// Audit annotation: the pod was admitted although the backend could not be called.
const FAILED_OPEN: &str = "failed-open";

/// ImagePolicyWebhook plugin with its cache of verdicts.
pub(crate) struct ImagePolicyWebhook {
    configuration: ImagePolicyConfiguration,
    verdicts: Verdicts,
    /// True if the last call failed: consecutive failures are logged once.
    failing: AtomicBool,
}

impl ImagePolicyWebhook {
    pub(crate) fn new(configuration: &ImagePolicyConfiguration) -> Self {
        Self {
            configuration: configuration.clone(),
            verdicts: Verdicts::default(),
            failing: AtomicBool::new(false),
        }
    }

    /// Returns the verdict for a review spec, from the cache or from the backend.
    ///
    /// # Errors
    /// The backend cannot be called, or its response is invalid.
    async fn verdict(&self, objects: &Objects, spec: &str) -> Result<Arc<Verdict>, String> {
        if let Some(cached) = self.verdicts.get(spec, Instant::now()) {
            return Ok(cached);
        }
        let webhooks = objects.webhooks().ok_or("webhooks cannot be called before the server has started")?;
        let Self { configuration, .. } = self;
        let answer =
            configuration.backend.call(webhooks, review::request_body(spec), configuration.retry_backoff);
        let answer = answer.await.map_err(|error| error.to_string())?;
        let verdict = Arc::new(review::parse_response(&answer)?);
        let ttl = if verdict.allowed { configuration.allow_ttl } else { configuration.deny_ttl };
        self.verdicts.insert(spec, &verdict, answer.len(), (Instant::now(), ttl));
        Ok(verdict)
    }

    /// Logs the first of consecutive failures as a warning and the following ones at debug level.
    fn report(&self, error: &str) {
        let default_allow = self.configuration.default_allow;
        if self.failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(error, default_allow, "image policy backend failed, applying defaultAllow");
        } else {
            tracing::warn!(error, default_allow, "image policy backend failed, applying defaultAllow");
        }
    }
}

impl Plugin for ImagePolicyWebhook {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "pods", ""), ("", "pods", review::EPHEMERAL_CONTAINERS)]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let (pod, attributes) = (request.new, request.attributes);
            let spec = review::spec(pod, attributes.subresource(), attributes.namespace);
            let spec = spec.map_err(|error| Box::new(Status::internal(error.to_string())))?;
            let note = |key: &str, value: &str| {
                attributes.context.annotations.note(format!("{AUDIT_PREFIX}{key}"), value.to_owned());
            };
            let verdict = match self.verdict(objects, &spec).await {
                Ok(verdict) => verdict,
                Err(error) => {
                    self.report(&error);
                    if !self.configuration.default_allow {
                        return Err(request.forbidden(&error));
                    }
                    note(FAILED_OPEN, "true");
                    return Ok(Vec::new());
                }
            };
            self.failing.store(false, Ordering::Relaxed);
            verdict.audit_annotations.iter().for_each(|(key, value)| note(key, value));
            match verdict.refusal() {
                Some(message) => Err(request.forbidden(&message)),
                None => Ok(Vec::new()),
            }
        })
    }
}
