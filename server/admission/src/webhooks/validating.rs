//! Validating webhooks: all webhooks that match a request are called concurrently (upstream's `validatingDispatcher`).

use futures::stream::{FuturesOrdered, StreamExt};
use portico_registry::{Objects, Result};

use super::answer::ReviewAnswer;
use super::call::{CallFailure, ReviewContext};
use super::configuration::Webhook;
use super::configured_webhooks::ConfiguredWebhooks;
use crate::matching::{MatchTarget, ObjectPair, RuleMatch};
use crate::metrics::Metrics;
use crate::request_view::RequestView;

impl ConfiguredWebhooks {
    /// Calls the matching webhooks that selectors and conditions do not exclude; returns the warnings for the caller.
    ///
    /// # Errors
    /// The first denial of a webhook, or the failure of its call.
    pub(crate) async fn validate(
        &self,
        matches: &[RuleMatch<Webhook>],
        objects: &Objects,
        target: &MatchTarget<'_>,
        metrics: &Metrics,
        pair: ObjectPair<'_>,
    ) -> Result<Vec<String>> {
        let cx = ReviewContext { objects, target, metrics, users: &self.users, mutates: false };
        let mut versions: Vec<RequestView<'_>> = Vec::new();
        let mut selected: Vec<(&Webhook, usize)> = Vec::new();
        for RuleMatch { item: webhook, version, .. } in matches {
            if !webhook.constraints.match_selectors(objects, target, pair).await? {
                continue;
            }
            let at =
                RequestView::find_or_convert(&mut versions, objects, target, version.clone(), pair).await?;
            if cx.matches_conditions(webhook, &versions[at]).await? {
                selected.push((webhook, at));
            }
        }
        let calls = selected
            .iter()
            .enumerate()
            .map(|(index, (webhook, at))| call(&cx, index, webhook, &versions[*at]));
        // With an ordered queue, an answer wakes only the call that it belongs to.
        combine(calls.collect::<FuturesOrdered<_>>().collect().await)
    }
}

async fn call(
    cx: &ReviewContext<'_>,
    index: usize,
    webhook: &Webhook,
    view: &RequestView<'_>,
) -> Result<Vec<String>> {
    let outcome = cx.call(webhook, view, async |answer: ReviewAnswer| {
        cx.annotate(webhook, &answer);
        Ok::<_, CallFailure>(answer.warnings)
    });
    let warnings = outcome.await?;
    if warnings.is_none() {
        let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
        cx.target.attributes.context.annotations.note(key, webhook.name.clone());
    }
    Ok(warnings.unwrap_or_default())
}

/// Returns all warnings, or the first refusal with all warnings.
fn combine(answers: Vec<Result<Vec<String>>>) -> Result<Vec<String>> {
    let (mut warnings, mut refusal) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(more) => warnings.extend(more),
            Err(status) => refusal = refusal.or(Some(status)),
        }
    }
    match refusal {
        Some(status) => Err(status.with_warnings(warnings)),
        None => Ok(warnings),
    }
}
