//! Activation and removal of a configuration: each waits until requests show the change.

use http::Method;

use super::configurations::Configuration;
use crate::https::Client;
use crate::process::wait_until;
use crate::webhook::Webhook;
use crate::{BenchContext, Failure};

/// A configuration that is in effect.
pub(super) struct ActiveConfiguration<'c>(&'c Configuration);

/// Creates the objects, and waits until all webhooks or policies are in effect.
pub(super) async fn apply<'c>(
    setting: &BenchContext,
    client: &mut Client,
    webhook: &Webhook,
    configuration: &'c Configuration,
) -> Result<ActiveConfiguration<'c>, Failure> {
    for (collection, object) in configuration.objects(setting, webhook) {
        client.send_ok(Method::POST, &collection, object).await?;
    }
    wait_until("all webhooks or policies are in effect", async || {
        Ok((effective_count(client, webhook, configuration).await? == configuration.count).then_some(()))
    })
    .await?;
    Ok(ActiveConfiguration(configuration))
}

impl ActiveConfiguration<'_> {
    /// Deletes the objects, and waits until no webhook or policy is in effect.
    pub(super) async fn remove(self, client: &mut Client, webhook: &Webhook) -> Result<(), Failure> {
        for collection in self.0.collections() {
            client.send_ok(Method::DELETE, &collection, String::new()).await?;
        }
        wait_until("no webhook or policy is in effect", async || {
            Ok((effective_count(client, webhook, self.0).await? == 0).then_some(()))
        })
        .await
    }
}

/// Returns the number of webhooks called for a request; for policies, all of them once the last one denies the request.
async fn effective_count(
    client: &mut Client,
    webhook: &Webhook,
    configuration: &Configuration,
) -> Result<usize, Failure> {
    let ((collection, object), before) = (configuration.probe(), webhook.review_count());
    let (status, _) = client.send(Method::POST, &collection, object).await?;
    if configuration.is_counted() {
        return Ok(webhook.review_count() - before);
    }
    Ok(if status.is_success() { 0 } else { configuration.count })
}
