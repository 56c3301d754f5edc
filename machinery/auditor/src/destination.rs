//! Destination of audit events: the log or the webhook.

use bytes::Bytes;

use crate::log::{self, LogDestination};
use crate::webhook::{self, WebhookDestination};

/// Destination of audit events.
pub(super) enum Destination {
    Log(LogDestination),
    Webhook(Box<WebhookDestination>),
}

impl Destination {
    /// Name of the plugin in `apiserver_audit_error_total`.
    pub(super) fn plugin(&self) -> &'static str {
        match self {
            Self::Log(_) => log::PLUGIN,
            Self::Webhook(_) => webhook::PLUGIN,
        }
    }

    /// Delivers events in order, and counts lost ones. Returns false if one was not delivered.
    pub(super) async fn deliver(&self, events: Vec<Bytes>, wait: bool) -> bool {
        match self {
            Self::Log(log) => log.write(events, wait).await,
            // Boxed: by value it would double the allocation of every recorded request.
            Self::Webhook(webhook) => Box::pin(webhook.post(&events)).await,
        }
    }
}
