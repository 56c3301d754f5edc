//! Admission webhooks (upstream's `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`): those whose configuration matches
//! a request are asked about it, one after another where they may change the object, all at once where they may not.
//!
//! A webhook that cannot be asked costs its failure policy and nothing else: calls are bounded for each webhook, in number, time
//! and bytes, and requests that it does not match never wait for it.

mod answer;
mod call;
mod configuration;
mod configured;
mod explain;
mod health;
mod mutating;
mod plugin_configuration;
mod review_request;
mod validating;

pub(crate) use configuration::Webhook;
pub(crate) use configured::ConfiguredWebhooks;
pub use explain::{Explained, Trouble};
pub(crate) use mutating::Round;
pub(crate) use plugin_configuration::WebhookPluginConfiguration;

/// What is to be read of answers is foreign: fuzz targets call this.
#[doc(hidden)]
pub use answer::read_any;
