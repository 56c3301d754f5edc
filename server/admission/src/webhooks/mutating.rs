//! Mutating webhooks: called one after another, each with the object as changed by the previous ones (upstream's
//! `mutatingDispatcher`).

use portico_machinery::{Object, Status};
use portico_registry::{Objects, Result, WebhookUsers};
use portico_schema::merge::{self, PatchError};

use super::answer::{Answer, JSON_PATCH, Patch};
use super::call::{Failure, ReviewContext};
use super::configuration::Webhook;
use super::configured::ConfiguredWebhooks;
use crate::matching::{Match, MatchTarget, Pair};
use crate::metrics::Metrics;
use crate::rounds::{Reinvocation, Rounds};
use crate::shown::Shown;

/// Request in one round of the mutating webhooks.
pub(crate) struct Round<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) target: &'a MatchTarget<'a>,
    pub(crate) metrics: &'a Metrics,
    pub(crate) rounds: &'a mut Rounds,
    pub(crate) reinvocation: &'a mut Reinvocation,
    /// Warnings for the caller.
    pub(crate) warnings: &'a mut Vec<String>,
}

/// Result of applying the patch of an answer.
struct Mutated {
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
        mut round: Round<'_>,
        matches: &[Match<Webhook>],
        mut new: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<()> {
        round.reinvocation.begin(round.rounds, new.as_deref());
        for Match { index, item: webhook, version } in matches {
            let pair = Pair { new: new.as_deref(), old };
            let cx = round.cx(&self.users);
            let Some(shown) = cx.shown(webhook, version.clone(), pair).await? else { continue };
            if !round.reinvocation.is_due(round.rounds, &webhook.id) {
                continue;
            }
            if let Some(changed) = round.ask(&cx, *index, webhook, shown).await?
                && let Some(new) = new.as_deref_mut()
            {
                *new = changed;
            }
        }
        round.reinvocation.end(round.rounds, new.as_deref());
        Ok(())
    }
}

impl<'a> Round<'a> {
    fn cx(&self, users: &'a WebhookUsers) -> ReviewContext<'a> {
        let Self { objects, target, metrics, .. } = *self;
        ReviewContext { objects, target, metrics, users, mutates: true }
    }

    /// Calls one webhook; returns the object if the webhook changed it.
    async fn ask(
        &mut self,
        cx: &ReviewContext<'_>,
        index: usize,
        webhook: &Webhook,
        shown: Shown<'_>,
    ) -> Result<Option<Object>> {
        let mutated = cx.call(webhook, &shown, async |answer| carry_out(cx, webhook, &shown, answer).await);
        let mutated = mutated.await?;
        let key = format!("round_{}_index_{index}", self.rounds.number());
        let annotations = &self.target.attributes.context.annotations;
        let changed = match mutated {
            Some(Mutated { changed, warnings }) => {
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
            self.reinvocation.changed();
            self.rounds.wanted = true;
        }
        if webhook.reinvoked {
            self.reinvocation.asked(&webhook.id);
        }
        Ok(changed)
    }
}

/// Applies the patch of an answer, in the version that the webhook received.
async fn carry_out(
    cx: &ReviewContext<'_>,
    webhook: &Webhook,
    shown: &Shown<'_>,
    answer: Answer,
) -> Result<Mutated, Failure> {
    cx.note(webhook, &answer);
    let warnings = answer.warnings;
    let unchanged = |warnings| Ok(Mutated { changed: None, warnings });
    let Some(Patch { json, patch_type }) = answer.patch else { return unchanged(warnings) };
    let undecodable = |error: &PatchError| {
        let why = error.to_string();
        let why = why.trim_start_matches("error decoding patch: ");
        Failure::Calling(format!("received undecodable patch in webhook response: {why}"), 503)
    };
    if merge::is_empty_json_patch(&json).map_err(|error| undecodable(&error))? {
        return unchanged(warnings);
    }
    let Some(object) = shown.new.as_deref() else {
        let why = format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            webhook.name
        );
        return Err(Failure::Refused(Box::new(Status::internal(why))));
    };
    if patch_type != JSON_PATCH {
        return Err(Failure::Calling(format!("unsupported patch type {patch_type:?}"), 503));
    }
    let patched = merge::json_patch(object, &json).map_err(|error| match error {
        PatchError::Failed(why) | PatchError::TestFailed(why) => {
            Failure::Refused(Box::new(Status::internal(why)))
        }
        other => undecodable(&other),
    })?;
    if patched == *object {
        return unchanged(warnings);
    }
    let attributes = &cx.target.attributes;
    let served = shown.version.served(cx.target);
    let read = attributes.from_version(cx.objects, served, &patched).await;
    let (changed, _) = read.map_err(|error| Failure::Refused(error.into()))?;
    Ok(Mutated { changed: Some(changed), warnings })
}
