//! Where events end.

use bytes::Bytes;

use crate::log::{self, Log};
use crate::webhook::{self, Webhook};

/// Where events end.
pub(super) enum Destination {
    Log(Log),
    Webhook(Box<Webhook>),
}

impl Destination {
    /// Name of the plugin in `apiserver_audit_error_total`.
    pub(super) fn plugin(&self) -> &'static str {
        match self {
            Self::Log(_) => log::PLUGIN,
            Self::Webhook(_) => webhook::PLUGIN,
        }
    }

    /// Delivers events, in order; false when one was not. Loss is counted here.
    pub(super) async fn deliver(&self, events: Vec<Bytes>, wait: bool) -> bool {
        match self {
            Self::Log(log) => log.write(events, wait).await,
            // In a box: by value it would make what every recorded request allocates twice as large.
            Self::Webhook(webhook) => Box::pin(webhook.post(&events)).await,
        }
    }
}
