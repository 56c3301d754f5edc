//! ImagePolicyWebhook: who is configured decides whether the images of a pod may run.
//!
//! Upstream rules: plugin/pkg/admission/imagepolicy. Nothing is locked while the backend is asked.

mod backend;
mod configuration;
mod review;
mod verdicts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use portico_machinery::Status;
use portico_registry::Objects;

use crate::plugin::{Plugin, Target, Validating, ValidationRequest};
pub use backend::ImageBackend;
pub(crate) use configuration::ImagePolicyConfiguration;
use review::Verdict;
use verdicts::Verdicts;

/// What is to be read of answers is foreign: fuzz targets call this.
#[doc(hidden)]
pub use review::read_any;

/// What notes for the audit log begin with.
const NOTE: &str = "imagepolicywebhook.image-policy.k8s.io/";
/// Notes that the backend could not be asked about a pod that was let pass.
const FAILED_OPEN: &str = "failed-open";

/// The plugin, with what it was answered lately.
pub(crate) struct ImagePolicyWebhook {
    configuration: ImagePolicyConfiguration,
    verdicts: Verdicts,
    /// Whether the last call has failed: that is logged once.
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

    /// The verdict on what is asked: one that is remembered, or the backend's.
    ///
    /// # Errors
    /// Why there is none.
    async fn verdict(&self, objects: &Objects, spec: &str) -> Result<Arc<Verdict>, String> {
        if let Some(known) = self.verdicts.get(spec, Instant::now()) {
            return Ok(known);
        }
        let webhooks = objects.webhooks().ok_or("webhooks cannot be called before the server has started")?;
        let Self { configuration, .. } = self;
        let answer = configuration.backend.ask(webhooks, review::question(spec), configuration.retry_backoff);
        let answer = answer.await.map_err(|error| error.to_string())?;
        let verdict = Arc::new(review::verdict(&answer)?);
        let ttl = if verdict.allowed { configuration.allow_ttl } else { configuration.deny_ttl };
        self.verdicts.remember(spec, &verdict, answer.len(), (Instant::now(), ttl));
        Ok(verdict)
    }

    /// Logs the first of the failures in a row; with many pods there are many.
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
    fn targets(&self) -> &'static [Target] {
        &[("", "pods", ""), ("", "pods", review::EPHEMERAL_CONTAINERS)]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            let (pod, attributes) = (request.new, request.attributes);
            let spec = review::spec(pod, attributes.subresource(), attributes.namespace);
            let spec = spec.map_err(|error| Box::new(Status::internal(error.to_string())))?;
            let note = |key: &str, value: &str| {
                attributes.context.annotations.note(format!("{NOTE}{key}"), value.to_owned());
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
                Some(why) => Err(request.forbidden(&why)),
                None => Ok(Vec::new()),
            }
        })
    }
}
