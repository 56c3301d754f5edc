//! Webhooks that a write would be subject to, and their state. Only rules are compared; no webhook is called.

use std::sync::Arc;

use portico_registry::{Objects, OpenCircuit, WebhookUsers};

use super::configuration::Webhook;
use super::health::Failing;
use crate::write_target::{ExplainedRequests, WriteTarget};

/// Webhook whose rules match a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// True if the webhook may change the object.
    pub mutates: bool,
    /// Name of the configuration object.
    pub configuration: String,
    pub name: String,
    /// Operations for which the rules match.
    pub operations: Vec<&'static str>,
    /// True if selectors or match conditions may exclude a request that the rules match.
    pub selective: bool,
    /// True if a request fails when the webhook cannot be called.
    pub fails: bool,
    /// Time of the last answer since the configuration changed, in milliseconds since 1970; `None` if there was none.
    pub answered_ms: Option<u64>,
    /// Last failure since the configuration changed; `None` if there was none.
    pub trouble: Option<Trouble>,
    /// Number of calls in progress to the endpoint of the webhook.
    pub under_way: usize,
    /// Addresses with an open circuit, which only probes dial.
    pub open: Vec<OpenCircuit>,
    /// Earliest expiry of a certificate in the CA bundle, in Unix seconds; `None` without a bundle.
    pub first_ca_end: Option<i64>,
}

/// Failure of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Error of the last failed call.
    pub reason: String,
    /// Time of the last failed call, in milliseconds since 1970.
    pub at_ms: u64,
    /// Time of the first failure after the last answer, in milliseconds since 1970.
    pub since_ms: u64,
}

impl From<Failing> for Trouble {
    fn from(Failing { reason, at_ms, since_ms }: Failing) -> Self {
        Self { reason, at_ms, since_ms }
    }
}

/// Returns the webhooks whose rules match a write, in the order of calls.
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
