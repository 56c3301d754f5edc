//! Webhooks that may only refuse: all that are concerned are asked at once (upstream's `validatingDispatcher`).

use futures::stream::{FuturesOrdered, StreamExt};
use portico_registry::{Objects, Result, WebhookUsers};

use super::answer::Answer;
use super::call::{Caller, Failure};
use super::configuration::{self, Webhook};
use super::explain::{Explained, Written, explain};
use crate::derived::Derived;
use crate::matching::{MatchTarget, Pair};
use crate::metrics::Metrics;
use crate::shown::Shown;

/// All of them.
pub(crate) struct ValidatingWebhooks {
    configured: Derived<Vec<Webhook>>,
    users: WebhookUsers,
}

impl Default for ValidatingWebhooks {
    /// All that are configured, called anonymously.
    fn default() -> Self {
        let resource = "validatingwebhookconfigurations";
        let configured = Derived::new("admissionregistration.k8s.io", resource, configuration::read);
        Self { configured, users: WebhookUsers::default() }
    }
}

impl ValidatingWebhooks {
    /// Has them called as these users.
    pub(crate) fn call_as(&mut self, users: WebhookUsers) {
        self.users = users;
    }

    /// Those that a write would meet, in order.
    pub(crate) async fn explain(&self, objects: &Objects, written: Written<'_>) -> Result<Vec<Explained>> {
        let configured = self.configured.all(objects).await?;
        let all = configured.iter().flat_map(|webhooks| webhooks.iter());
        Ok(explain(objects, all, (false, &self.users), written))
    }

    /// Whether there may be any.
    pub(crate) fn any(&self, objects: &Objects) -> bool {
        self.configured.any(objects)
    }

    /// Whether the rules of one of them match, as far as that is known without waiting: if not, it may be.
    pub(crate) fn concern(&self, objects: &Objects, target: &MatchTarget<'_>) -> bool {
        let Some(configured) = self.configured.known(objects) else { return true };
        configured
            .iter()
            .flat_map(|webhooks| webhooks.iter())
            .any(|webhook| webhook.constraints.match_rules(objects, target).is_some())
    }

    /// Asks all that are concerned. Gives what the caller is warned of.
    ///
    /// # Errors
    /// What the first webhook has answered that refuses, or why it could not answer.
    pub(crate) async fn validate(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        metrics: &Metrics,
        pair: Pair<'_>,
    ) -> Result<Vec<String>> {
        let caller = Caller { objects, target, metrics, users: &self.users, mutates: false };
        let configured = self.configured.all(objects).await?;
        let mut versions: Vec<Shown<'_>> = Vec::new();
        let mut asked: Vec<(&Webhook, usize)> = Vec::new();
        for webhook in configured.iter().flat_map(|webhooks| webhooks.iter()) {
            let Some(version) = webhook.constraints.match_rules(objects, target) else { continue };
            if !webhook.constraints.select(objects, target, pair).await? {
                continue;
            }
            let at = Shown::find_or_make(&mut versions, objects, target, version, pair).await?;
            if caller.is_meant(webhook, &versions[at])? {
                asked.push((webhook, at));
            }
        }
        let calls = asked
            .iter()
            .enumerate()
            .map(|(index, (webhook, at))| ask(&caller, index, webhook, &versions[*at]));
        // An answer wakes the call that it is for, and none of the others.
        gathered(calls.collect::<FuturesOrdered<_>>().collect().await)
    }
}

async fn ask(caller: &Caller<'_>, index: usize, webhook: &Webhook, shown: &Shown<'_>) -> Result<Vec<String>> {
    let answered = caller.call(webhook, shown, async |answer: Answer| {
        caller.note(webhook, &answer);
        Ok::<_, Failure>(answer.warnings)
    });
    let warnings = answered.await?;
    if warnings.is_none() {
        let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
        caller.target.attributes.context.annotations.note(key, webhook.name.clone());
    }
    Ok(warnings.unwrap_or_default())
}

/// All warnings, or the first refusal with them.
fn gathered(answers: Vec<Result<Vec<String>>>) -> Result<Vec<String>> {
    let (mut warnings, mut refusal) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(further) => warnings.extend(further),
            Err(status) => refusal = refusal.or(Some(status)),
        }
    }
    match refusal {
        Some(status) => Err(status.with_warnings(warnings)),
        None => Ok(warnings),
    }
}
