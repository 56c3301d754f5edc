//! Webhooks that may change what is written: one after another, each sees what the ones before have made of it (upstream's
//! `mutatingDispatcher`).

use portico_machinery::{Object, Status};
use portico_registry::{Objects, Result};
use portico_schema::merge::{self, PatchError};

use super::answer::Answer;
use super::call::{Caller, Failure};
use super::configuration::{self, Webhook};
use crate::derived::Derived;
use crate::matching::{MatchTarget, Pair};
use crate::metrics::Metrics;
use crate::rounds::{Reinvocation, Rounds};
use crate::shown::Shown;

/// All of them.
pub(crate) struct MutatingWebhooks(Derived<Vec<Webhook>>);

/// A request on its way through the webhooks of one round.
pub(crate) struct Round<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) target: &'a MatchTarget<'a>,
    pub(crate) metrics: &'a Metrics,
    pub(crate) rounds: &'a mut Rounds,
    pub(crate) reinvocation: &'a mut Reinvocation,
    /// What the caller is warned of.
    pub(crate) warnings: &'a mut Vec<String>,
}

/// An answer that was carried out.
struct Carried {
    changed: Option<Object>,
    warnings: Vec<String>,
}

impl MutatingWebhooks {
    pub(crate) fn new() -> Self {
        Self(Derived::new(
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations",
            configuration::read,
        ))
    }

    /// Whether there may be any.
    pub(crate) fn any(&self, objects: &Objects) -> bool {
        self.0.any(objects)
    }

    /// Whether the rules of one of them match, as far as that is known without waiting: if not, it may be.
    pub(crate) fn concern(&self, objects: &Objects, target: &MatchTarget<'_>) -> bool {
        let Some(configured) = self.0.known(objects) else { return true };
        configured
            .iter()
            .flat_map(|webhooks| webhooks.iter())
            .any(|webhook| webhook.constraints.match_rules(objects, target).is_some())
    }

    /// Asks all that are due.
    ///
    /// # Errors
    /// What a webhook has answered, or why it could not.
    pub(crate) async fn mutate(
        &self,
        mut round: Round<'_>,
        mut new: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<()> {
        round.reinvocation.begin(round.rounds, new.as_deref());
        let configured = self.0.all(round.objects).await?;
        let all = configured.iter().flat_map(|webhooks| webhooks.iter()).enumerate();
        for (index, webhook) in all {
            let Some(version) = webhook.constraints.match_rules(round.objects, round.target) else {
                continue;
            };
            let pair = Pair { new: new.as_deref(), old };
            let caller = round.caller();
            let Some(shown) = caller.shown(webhook, version, pair).await? else { continue };
            if !round.reinvocation.is_due(round.rounds, &webhook.id) {
                continue;
            }
            if let Some(changed) = round.ask(index, webhook, shown).await?
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
    fn caller(&self) -> Caller<'a> {
        Caller { objects: self.objects, target: self.target, metrics: self.metrics, mutates: true }
    }

    /// Asks one; what it makes of the object, if it changes it.
    async fn ask(&mut self, index: usize, webhook: &Webhook, shown: Shown<'_>) -> Result<Option<Object>> {
        let caller = self.caller();
        let carried =
            caller.call(webhook, &shown, async |answer| carry_out(&caller, webhook, &shown, answer).await);
        let carried = carried.await?;
        let key = format!("round_{}_index_{index}", self.rounds.number());
        let annotations = &self.target.attributes.context.annotations;
        let changed = match carried {
            Some(Carried { changed, warnings }) => {
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

/// Applies the patch of an answer, in the version that the webhook sees.
async fn carry_out(
    caller: &Caller<'_>,
    webhook: &Webhook,
    shown: &Shown<'_>,
    answer: Answer,
) -> Result<Carried, Failure> {
    caller.note(webhook, &answer);
    let warnings = answer.warnings;
    let Some(patch) = answer.patch else { return Ok(Carried { changed: None, warnings }) };
    let Some(object) = shown.new.as_deref() else {
        let why = format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            webhook.name
        );
        return Err(Failure::Refused(Box::new(Status::internal(why))));
    };
    let patched = merge::json_patch(object, &patch).map_err(|error| match error {
        PatchError::Failed(why) | PatchError::TestFailed(why) => {
            Failure::Refused(Box::new(Status::internal(why)))
        }
        other => Failure::Calling(format!("received undecodable patch in webhook response: {other}"), 503),
    })?;
    if patched == *object {
        return Ok(Carried { changed: None, warnings });
    }
    let attributes = &caller.target.attributes;
    let served = shown.version.served(caller.target);
    let read = attributes.from_version(caller.objects, served, &patched).await;
    let (changed, _) = read.map_err(Failure::Refused)?;
    Ok(Carried { changed: Some(changed), warnings })
}
