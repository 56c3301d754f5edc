//! Admission webhooks (upstream's `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`): calls the webhooks whose
//! configuration matches a request, mutating ones one after another, validating ones concurrently.
//!
//! A webhook that cannot be called affects only the requests that it matches, according to its failure policy. Calls to each
//! webhook are limited in number, time and bytes.

mod answer;
mod call;
mod configuration;
mod configured_webhooks;
mod explain;
mod health;
mod mutating;
mod plugin_configuration;
mod review_request;
mod validating;

pub(crate) use configuration::Webhook;
pub(crate) use configured_webhooks::ConfiguredWebhooks;
pub use explain::{ExplainedWebhook, WebhookFailure};
pub(crate) use mutating::WebhookRound;
pub(crate) use plugin_configuration::WebhookPluginConfiguration;

/// Exposed for fuzz targets, because responses of webhooks are untrusted.
#[doc(hidden)]
pub use answer::read_any;
