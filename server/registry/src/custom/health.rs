//! How conversion webhooks fare, as their last answers showed.

use parking_lot::Mutex;

/// A webhook whose last answer was none, or a wrong one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingWebhook {
    /// The definition.
    pub definition: String,
    /// Which group and versions it defines.
    pub group: String,
    /// Since when it fails, RFC 3339.
    pub since: String,
    /// The message that requests get.
    pub message: String,
}

/// The state of a definition's webhook after its last response.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Option<FailingWebhook>>);

impl Health {
    /// What is wrong, if anything is.
    pub(super) fn failing(&self) -> Option<FailingWebhook> {
        self.0.lock().clone()
    }

    /// Remembers how it went; what fails already is known since its first failure.
    pub(super) fn note(&self, failed: Option<FailingWebhook>) {
        let mut held = self.0.lock();
        let since = held.take().map(|before| before.since);
        *held = failed.map(|now| FailingWebhook { since: since.unwrap_or(now.since), ..now });
    }
}
