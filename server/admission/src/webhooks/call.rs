//! A webhook call, and the handling of failures.

use std::time::Instant;

use portico_kit::{slow_trace, spans};
use portico_machinery::Status;
use portico_policy::{Conditions, Matched, Subject};
use portico_registry::latencies::{MUTATING_WEBHOOK, VALIDATING_WEBHOOK};
use portico_registry::{CallError, Objects, Result, WebhookCall, WebhookUsers};

use super::answer::{Answer, Expected, denied};
use super::configuration::Webhook;
use super::review_request::ReviewRequest;
use crate::matching::{MatchTarget, MatchedAs, Pair};
use crate::metrics::{Counted, ErrorType, Metrics};
use crate::shown::Shown;

/// Value of the metric label for webhooks.
const KIND: &str = "webhook";

/// Request that webhooks receive.
pub(super) struct ReviewContext<'a> {
    pub(super) objects: &'a Objects,
    pub(super) target: &'a MatchTarget<'a>,
    pub(super) metrics: &'a Metrics,
    /// Users as which webhooks are called.
    pub(super) users: &'a WebhookUsers,
    /// True if answers may change the object.
    pub(super) mutates: bool,
}

/// Failure of a webhook call; the request is not admitted unless the failure policy allows it.
pub(super) enum Failure {
    /// The webhook could not be called, so its failure policy decides. Contains upstream's reason and the code for metrics.
    Calling(String, u16),
    /// The webhook denied the request.
    Denied(Box<Status>),
    /// The response cannot be applied, or the webhook must not be called.
    Refused(Box<Status>),
}

impl<'a> ReviewContext<'a> {
    /// Returns the view of the request for a webhook; `None` if the webhook does not match the request.
    ///
    /// # Errors
    /// 403 if its match conditions fail, 404 if the namespace does not exist, 500 for other errors.
    pub(super) async fn shown<'p>(
        &self,
        webhook: &Webhook,
        version: MatchedAs,
        pair: Pair<'p>,
    ) -> Result<Option<Shown<'p>>> {
        if !webhook.constraints.select(self.objects, self.target, pair).await? {
            return Ok(None);
        }
        let shown = Shown::of(self.objects, self.target, version, pair).await?;
        Ok(self.is_meant(webhook, &shown).await?.then_some(shown))
    }

    /// True if the match conditions hold; if they fail, the failure policy decides.
    pub(super) async fn is_meant(&self, webhook: &Webhook, shown: &Shown<'_>) -> Result<bool> {
        let counted = self.counted(webhook);
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let begun = Instant::now();
        let subject = shown.subject(self.objects, self.target);
        let conditions = |conditions: &Conditions, subject: &Subject<'_>| conditions.evaluate(subject);
        let (matched, _) =
            self.target.evaluate(self.objects, &webhook.conditions, &subject, conditions).await?;
        self.metrics.conditions_evaluated(counted, KIND, begun.elapsed());
        match matched {
            Matched::Yes => Ok(true),
            Matched::No => {
                self.metrics.excluded(counted, KIND);
                Ok(false)
            }
            Matched::Failed(why) => {
                self.metrics.condition_failed(counted, KIND);
                if !webhook.fails {
                    return Ok(false);
                }
                let (resource, name) = (&self.target.resource.group_resource(), self.target.attributes.name);
                Err(Box::new(Status::forbidden(resource, name, &why)))
            }
        }
    }

    /// Calls a webhook; `used` processes the answer within the measured time and the concurrency limit of the call.
    ///
    /// # Errors
    /// The request is not admitted. Returns `None` if the call failed and the failure policy is `Ignore`.
    pub(super) async fn call<T>(
        &self,
        webhook: &Webhook,
        shown: &Shown<'_>,
        used: impl AsyncFnOnce(Answer) -> Result<T, Failure>,
    ) -> Result<Option<T>> {
        let begun = Instant::now();
        let name = if self.mutates { MUTATING_WEBHOOK } else { VALIDATING_WEBHOOK };
        let span = spans::child(name);
        span.set("webhook", webhook.name.to_string());
        span.set("resource", self.target.resource.resource.to_string());
        let outcome = match slow_trace::part(name, span.within(self.ask(webhook, shown))).await {
            Ok(answer) => used(answer).await,
            Err(failure) => Err(failure),
        };
        let (counted, took) = (self.counted(webhook), begun.elapsed());
        let (error, code, status) = match outcome {
            Ok(value) => {
                self.metrics.passed(&webhook.passed, self.target.attributes.operation, counted, took);
                return Ok(Some(value));
            }
            Err(Failure::Calling(reason, code)) => {
                let why = format!("failed calling webhook {:?}: {reason}", webhook.name);
                report(webhook, &reason);
                if !webhook.fails {
                    self.metrics.called(counted, None, code, took);
                    self.metrics.failed_open(counted);
                    return Ok(None);
                }
                (ErrorType::Calling, code, Box::new(Status::internal(why)))
            }
            Err(Failure::Denied(status)) => (ErrorType::None, status.code, status),
            Err(Failure::Refused(status)) => (ErrorType::Server, 0, status),
        };
        self.metrics.called(counted, Some(error), code, took);
        Err(status)
    }

    async fn ask(&self, webhook: &Webhook, shown: &Shown<'_>) -> Result<Answer, Failure> {
        if self.target.attributes.is_dry_run() && !webhook.takes_dry_runs {
            let why = format!("admission webhook {:?} does not support dry run", webhook.name);
            return Err(Failure::Refused(Box::new(Status::bad_request(why))));
        }
        let Some(version) = webhook.version else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::Calling(why.to_owned(), 400));
        };
        let Some(webhooks) = self.objects.webhooks() else {
            return Err(Failure::Calling(
                "webhooks cannot be called before the server has started".to_owned(),
                503,
            ));
        };
        let ReviewRequest { uid, body } = ReviewRequest::new(version, shown);
        let call = WebhookCall {
            endpoint: &webhook.endpoint,
            users: self.users,
            body,
            answer_bytes: webhooks.limits().review_bytes,
        };
        let body = webhooks.post(call).await.map_err(not_called)?;
        let answer = Expected { version, uid: &uid, mutates: self.mutates }.read(&body);
        let answer = answer.map_err(|why| Failure::Calling(why, 503))?;
        webhook.health.answered();
        if answer.allowed {
            return Ok(answer);
        }
        self.note(webhook, &answer);
        let status = denied(&webhook.name, answer.denial).with_warnings(answer.warnings);
        Err(Failure::Denied(status))
    }

    /// Adds the audit annotations of a webhook.
    pub(super) fn note(&self, webhook: &Webhook, answer: &Answer) {
        let annotations = &self.target.attributes.context.annotations;
        for (key, value) in &answer.annotations {
            annotations.note(format!("{}/{key}", webhook.name), value.clone());
        }
    }

    fn counted<'w>(&self, webhook: &'w Webhook) -> Counted<'w> {
        Counted {
            name: &webhook.name,
            step: if self.mutates { "admit" } else { "validating" },
            operation: self.target.attributes.operation_name(),
        }
    }
}

/// Logs the first of consecutive failures as a warning and the following ones at debug level.
fn report(webhook: &Webhook, error: &str) {
    let name = &webhook.name;
    let failure_policy = if webhook.fails { "Fail" } else { "Ignore" };
    if webhook.health.failed(error) {
        tracing::warn!(webhook = name, failure_policy, error, "admission webhook failed");
    } else {
        tracing::debug!(webhook = name, failure_policy, error, "admission webhook failed");
    }
}

fn not_called(error: CallError) -> Failure {
    let (what, code) = match &error {
        CallError::Configuration(_) => ("could not get REST client", 500),
        CallError::Exchange { .. } | CallError::Broken(_) => ("failed to call webhook", 503),
        CallError::Refused { code, .. } => ("failed to call webhook", *code),
    };
    Failure::Calling(format!("{what}: {error}"), code)
}
