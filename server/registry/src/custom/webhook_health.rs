//! Health of conversion webhooks, from their last responses.

use parking_lot::Mutex;

/// Conversion webhook whose last call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingWebhook {
    /// Name of the definition.
    pub definition: String,
    /// API group of the definition.
    pub group: String,
    /// Time of the first failure, in RFC 3339.
    pub since: String,
    /// Error message in responses to requests.
    pub message: String,
}

/// The state of a definition's webhook after its last response.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Option<FailingWebhook>>);

impl Health {
    /// Failure of the last call, if it failed.
    pub(super) fn last_failure(&self) -> Option<FailingWebhook> {
        self.0.lock().clone()
    }

    /// Records the result of a call. Consecutive failures keep the time of the first one.
    pub(super) fn record(&self, failure: Option<FailingWebhook>) {
        let mut last_failure = self.0.lock();
        let since = last_failure.take().map(|before| before.since);
        *last_failure =
            failure.map(|failure| FailingWebhook { since: since.unwrap_or(failure.since), ..failure });
    }
}
