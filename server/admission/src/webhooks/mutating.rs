//! Mutating webhooks: called one after another, each with the object as changed by the previous ones (upstream's
//! `mutatingDispatcher`).

use portico_machinery::{Object, Status};
use portico_registry::{Objects, Result, WebhookUsers};
use portico_schema::merge::{self, PatchError};

use super::answer::{JSON_PATCH, Patch, ReviewAnswer};
use super::call::{CallFailure, ReviewContext};
use super::configuration::Webhook;
use super::configured_webhooks::ConfiguredWebhooks;
use crate::matching::{MatchTarget, ObjectPair, RuleMatch};
use crate::metrics::Metrics;
use crate::request_view::RequestView;
use crate::rounds::{Reinvocation, Rounds};

/// Request in one round of the mutating webhooks.
pub(crate) struct WebhookRound<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) target: &'a MatchTarget<'a>,
    pub(crate) metrics: &'a Metrics,
    pub(crate) rounds: &'a mut Rounds,
    pub(crate) reinvocation: &'a mut Reinvocation,
    /// Warnings for the caller.
    pub(crate) warnings: &'a mut Vec<String>,
}

/// Result of applying the patch of an answer.
struct AppliedPatch {
    changed: Option<Object>,
    warnings: Vec<String>,
}

impl ConfiguredWebhooks {
    /// Calls the matching webhooks that are due in this round and that selectors and conditions do not exclude.
    ///
    /// # Errors
    /// The denial of a webhook, or the failure of a call.
    pub(crate) async fn mutate(
        &self,
        mut round: WebhookRound<'_>,
        matches: &[RuleMatch<Webhook>],
        mut new: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<()> {
        round.reinvocation.begin(round.rounds, new.as_deref());
        for RuleMatch { index, item: webhook, version } in matches {
            let pair = ObjectPair { new: new.as_deref(), old };
            let cx = round.review_context(&self.users);
            let Some(view) = cx.request_view(webhook, version.clone(), pair).await? else { continue };
            if !round.reinvocation.is_due(round.rounds, &webhook.id) {
                continue;
            }
            if let Some(changed) = round.call(&cx, *index, webhook, view).await?
                && let Some(new) = new.as_deref_mut()
            {
                *new = changed;
            }
        }
        round.reinvocation.end(round.rounds, new.as_deref());
        Ok(())
    }
}

impl<'a> WebhookRound<'a> {
    fn review_context(&self, users: &'a WebhookUsers) -> ReviewContext<'a> {
        let Self { objects, target, metrics, .. } = *self;
        ReviewContext { objects, target, metrics, users, mutates: true }
    }

    /// Calls one webhook; returns the object if the webhook changed it.
    async fn call(
        &mut self,
        cx: &ReviewContext<'_>,
        index: usize,
        webhook: &Webhook,
        view: RequestView<'_>,
    ) -> Result<Option<Object>> {
        let mutated = cx.call(webhook, &view, async |answer| apply_patch(cx, webhook, &view, answer).await);
        let mutated = mutated.await?;
        let key = format!("round_{}_index_{index}", self.rounds.number());
        let annotations = &self.target.attributes.context.annotations;
        let changed = match mutated {
            Some(AppliedPatch { changed, warnings }) => {
                self.warnings.extend(warnings);
                changed
            }
            None => {
                let failed_open = format!("failed-open.mutation.webhook.admission.k8s.io/{key}");
                annotations.note(failed_open, webhook.name.clone());
                None
            }
        };
        let mutated = format!(
            r#"{{"configuration":"{}","webhook":"{}","mutated":{}}}"#,
            webhook.configuration,
            webhook.name,
            changed.is_some()
        );
        annotations.note(format!("mutation.webhook.admission.k8s.io/{key}"), mutated);
        if changed.is_some() {
            self.reinvocation.require_reinvoking();
            self.rounds.should_reinvoke = true;
        }
        if webhook.is_reinvocable {
            self.reinvocation.add_invoked(&webhook.id);
        }
        Ok(changed)
    }
}

/// Applies the patch of an answer, in the version that the webhook received.
async fn apply_patch(
    cx: &ReviewContext<'_>,
    webhook: &Webhook,
    view: &RequestView<'_>,
    answer: ReviewAnswer,
) -> Result<AppliedPatch, CallFailure> {
    cx.annotate(webhook, &answer);
    let warnings = answer.warnings;
    let unchanged = |warnings| Ok(AppliedPatch { changed: None, warnings });
    let Some(Patch { json, patch_type }) = answer.patch else { return unchanged(warnings) };
    let undecodable = |error: &PatchError| {
        let message = error.to_string();
        let message = message.trim_start_matches("error decoding patch: ");
        CallFailure::NotCalled(format!("received undecodable patch in webhook response: {message}"), 503)
    };
    if merge::is_empty_json_patch(&json).map_err(|error| undecodable(&error))? {
        return unchanged(warnings);
    }
    let Some(object) = view.new.as_deref() else {
        let message = format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            webhook.name
        );
        return Err(CallFailure::Refused(Box::new(Status::internal(message))));
    };
    if patch_type != JSON_PATCH {
        return Err(CallFailure::NotCalled(format!("unsupported patch type {patch_type:?}"), 503));
    }
    let patched = merge::json_patch(object, &json).map_err(|error| match error {
        PatchError::Failed(error) | PatchError::TestFailed(error) => {
            CallFailure::Refused(Box::new(Status::internal(error)))
        }
        other => undecodable(&other),
    })?;
    if patched == *object {
        return unchanged(warnings);
    }
    let attributes = &cx.target.attributes;
    let served = view.version.served(cx.target);
    let read = attributes.from_version(cx.objects, served, &patched).await;
    let (changed, _) = read.map_err(|error| CallFailure::Refused(error.into()))?;
    Ok(AppliedPatch { changed: Some(changed), warnings })
}
