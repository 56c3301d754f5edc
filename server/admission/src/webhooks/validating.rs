//! Validating webhooks: all webhooks that match a request are called concurrently (upstream's `validatingDispatcher`).

use futures::stream::{FuturesOrdered, StreamExt};
use portico_registry::{Objects, Result};

use super::answer::Answer;
use super::call::{Failure, ReviewContext};
use super::configuration::Webhook;
use super::configured::ConfiguredWebhooks;
use crate::matching::{Match, MatchTarget, Pair};
use crate::metrics::Metrics;
use crate::shown::Shown;

impl ConfiguredWebhooks {
    /// Calls the matching webhooks that selectors and conditions do not exclude; returns the warnings for the caller.
    ///
    /// # Errors
    /// The first denial of a webhook, or the failure of its call.
    pub(crate) async fn validate(
        &self,
        matches: &[Match<Webhook>],
        objects: &Objects,
        target: &MatchTarget<'_>,
        metrics: &Metrics,
        pair: Pair<'_>,
    ) -> Result<Vec<String>> {
        let cx = ReviewContext { objects, target, metrics, users: &self.users, mutates: false };
        let mut versions: Vec<Shown<'_>> = Vec::new();
        let mut asked: Vec<(&Webhook, usize)> = Vec::new();
        for Match { item: webhook, version, .. } in matches {
            if !webhook.constraints.select(objects, target, pair).await? {
                continue;
            }
            let at = Shown::find_or_make(&mut versions, objects, target, version.clone(), pair).await?;
            if cx.is_meant(webhook, &versions[at]).await? {
                asked.push((webhook, at));
            }
        }
        let calls =
            asked.iter().enumerate().map(|(index, (webhook, at))| ask(&cx, index, webhook, &versions[*at]));
        // With an ordered queue, an answer wakes only the call that it belongs to.
        gathered(calls.collect::<FuturesOrdered<_>>().collect().await)
    }
}

async fn ask(
    cx: &ReviewContext<'_>,
    index: usize,
    webhook: &Webhook,
    shown: &Shown<'_>,
) -> Result<Vec<String>> {
    let answered = cx.call(webhook, shown, async |answer: Answer| {
        cx.note(webhook, &answer);
        Ok::<_, Failure>(answer.warnings)
    });
    let warnings = answered.await?;
    if warnings.is_none() {
        let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
        cx.target.attributes.context.annotations.note(key, webhook.name.clone());
    }
    Ok(warnings.unwrap_or_default())
}

/// Returns all warnings, or the first refusal with all warnings.
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
