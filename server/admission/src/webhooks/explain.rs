//! Which webhooks a write would meet, and how they are: their rules are compared with it, they are not called.

use std::sync::Arc;

use portico_registry::{Objects, OpenCircuit, WebhookUsers};

use super::configuration::Webhook;
use super::health::Failing;
use crate::write_target::{ExplainedRequests, WriteTarget};

/// One webhook that a write would meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Whether it may change the object.
    pub mutates: bool,
    /// The object that configures it.
    pub configuration: String,
    /// Its name.
    pub name: String,
    /// For which operations its rules match.
    pub operations: Vec<&'static str>,
    /// Whether selectors or match conditions may leave a request out that its rules match.
    pub selective: bool,
    /// Whether a request fails when it cannot be asked.
    pub fails: bool,
    /// When it answered last since it was configured so, in milliseconds since 1970.
    pub answered_ms: Option<u64>,
    /// Its last failure since then.
    pub trouble: Option<Trouble>,
    /// Calls under way to where it is.
    pub under_way: usize,
    /// Its addresses that are not dialed but by probes.
    pub open: Vec<OpenCircuit>,
    /// When the first certificate of its CA bundle ends, in Unix seconds; nothing without one.
    pub first_ca_end: Option<i64>,
}

/// A failure of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Why the last call that failed has failed.
    pub reason: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// When the first one after its last answer failed.
    pub since_ms: u64,
}

impl From<Failing> for Trouble {
    fn from(Failing { reason, at_ms, since_ms }: Failing) -> Self {
        Self { reason, at_ms, since_ms }
    }
}

/// The webhooks of these whose rules match a write, in the order in which they are asked.
pub(super) fn explain<'w>(
    objects: &Objects,
    configured: impl Iterator<Item = &'w Arc<Webhook>>,
    (mutates, users): (bool, &WebhookUsers),
    written: WriteTarget<'_>,
) -> Vec<Explained> {
    let requests = ExplainedRequests::new();
    let targets = requests.targets(written);
    let mut met = Vec::new();
    for webhook in configured {
        let matching =
            targets.iter().filter(|target| webhook.constraints.match_rules(objects, target).is_some());
        let operations: Vec<_> = matching.map(|target| target.attributes.operation_name()).collect();
        if !operations.is_empty() {
            met.push(webhook.explained(objects, mutates, users, operations));
        }
    }
    met
}

impl Webhook {
    fn explained(
        &self,
        objects: &Objects,
        mutates: bool,
        users: &WebhookUsers,
        operations: Vec<&'static str>,
    ) -> Explained {
        let state = objects.webhooks().and_then(|webhooks| webhooks.state(&self.endpoint, users));
        let state = state.unwrap_or_default();
        Explained {
            mutates,
            configuration: self.configuration.clone(),
            name: self.name.clone(),
            operations,
            selective: self.constraints.selects() || !self.conditions.is_empty(),
            fails: self.fails,
            answered_ms: self.health.answered_ms(),
            trouble: self.health.last_failure().map(Trouble::from),
            under_way: state.under_way,
            open: state.open,
            first_ca_end: self.endpoint.first_ca_end(),
        }
    }
}
