//! Activation and removal of a configuration: each waits until requests show the change.

use http::Method;

use super::configurations::Configuration;
use crate::https::Client;
use crate::process::until;
use crate::webhook::Webhook;
use crate::{Failure, Setting};

/// A configuration that is in effect.
pub(super) struct Applied<'c>(&'c Configuration);

/// Creates the objects, and waits until all webhooks or policies are in effect.
pub(super) async fn apply<'c>(
    setting: &Setting,
    client: &mut Client,
    webhook: &Webhook,
    configuration: &'c Configuration,
) -> Result<Applied<'c>, Failure> {
    for (collection, object) in configuration.objects(setting, webhook) {
        client.must(Method::POST, &collection, object).await?;
    }
    until("all are asked", async || {
        Ok((asked(client, webhook, configuration).await? == configuration.count).then_some(()))
    })
    .await?;
    Ok(Applied(configuration))
}

impl Applied<'_> {
    /// Deletes the objects, and waits until no webhook or policy is in effect.
    pub(super) async fn remove(self, client: &mut Client, webhook: &Webhook) -> Result<(), Failure> {
        for collection in self.0.collections() {
            client.must(Method::DELETE, &collection, String::new()).await?;
        }
        until("none is asked", async || Ok((asked(client, webhook, self.0).await? == 0).then_some(()))).await
    }
}

/// Returns the number of webhooks called for a request; for policies, all of them once the last one denies the request.
async fn asked(
    client: &mut Client,
    webhook: &Webhook,
    configuration: &Configuration,
) -> Result<usize, Failure> {
    let ((collection, object), before) = (configuration.probe(), webhook.asked());
    let (status, _) = client.send(Method::POST, &collection, object).await?;
    if configuration.calls() {
        return Ok(webhook.asked() - before);
    }
    Ok(if status.is_success() { 0 } else { configuration.count })
}
