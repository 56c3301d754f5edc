//! Webhooks that a write would be subject to, and their state. Only rules are compared; no webhook is called.

use std::sync::Arc;

use portico_registry::{Objects, OpenCircuit, WebhookUsers};

use super::configuration::Webhook;
use super::health::FailureRecord;
use crate::write_target::{ExplainedRequests, WriteTarget};

/// Webhook whose rules match a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedWebhook {
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
    pub fails_closed: bool,
    /// Time of the last answer since the configuration changed, in milliseconds since 1970; `None` if there was none.
    pub answered_ms: Option<u64>,
    /// Last failure since the configuration changed; `None` if there was none.
    pub last_failure: Option<WebhookFailure>,
    /// Number of calls in progress to the endpoint of the webhook.
    pub active_calls: usize,
    /// Addresses with an open circuit, which only probes dial.
    pub open_circuits: Vec<OpenCircuit>,
    /// Earliest expiry of a certificate in the CA bundle, in Unix seconds; `None` without a bundle.
    pub first_ca_expiry: Option<i64>,
}

/// Failure of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookFailure {
    /// Error of the last failed call.
    pub reason: String,
    /// Time of the last failed call, in milliseconds since 1970.
    pub at_ms: u64,
    /// Time of the first failure after the last answer, in milliseconds since 1970.
    pub since_ms: u64,
}

impl From<FailureRecord> for WebhookFailure {
    fn from(FailureRecord { reason, at_ms, since_ms }: FailureRecord) -> Self {
        Self { reason, at_ms, since_ms }
    }
}

/// Returns the webhooks whose rules match a write, in the order of calls.
pub(super) fn explain<'w>(
    objects: &Objects,
    webhooks: impl Iterator<Item = &'w Arc<Webhook>>,
    (mutates, users): (bool, &WebhookUsers),
    write_target: WriteTarget<'_>,
) -> Vec<ExplainedWebhook> {
    let requests = ExplainedRequests::new();
    let targets = requests.targets(write_target);
    let mut explained = Vec::new();
    for webhook in webhooks {
        let matching =
            targets.iter().filter(|target| webhook.constraints.match_rules(objects, target).is_some());
        let operations: Vec<_> = matching.map(|target| target.attributes.operation_name()).collect();
        if !operations.is_empty() {
            explained.push(webhook.to_explained(objects, mutates, users, operations));
        }
    }
    explained
}

impl Webhook {
    fn to_explained(
        &self,
        objects: &Objects,
        mutates: bool,
        users: &WebhookUsers,
        operations: Vec<&'static str>,
    ) -> ExplainedWebhook {
        let state = objects.webhooks().and_then(|webhooks| webhooks.state(&self.endpoint, users));
        let state = state.unwrap_or_default();
        ExplainedWebhook {
            mutates,
            configuration: self.configuration.clone(),
            name: self.name.clone(),
            operations,
            selective: self.constraints.has_selectors() || !self.conditions.is_empty(),
            fails_closed: self.fails_closed,
            answered_ms: self.health.answered_ms(),
            last_failure: self.health.last_failure().map(WebhookFailure::from),
            active_calls: state.in_flight,
            open_circuits: state.open_circuits,
            first_ca_expiry: self.endpoint.ca_expiry(),
        }
    }
}
