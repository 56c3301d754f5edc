//! A webhook call, and the handling of failures.

use std::time::Instant;

use portico_kit::{slow_trace, spans};
use portico_machinery::Status;
use portico_policy::{EvaluationInput, MatchConditions, MatchResult};
use portico_registry::latencies::{MUTATING_WEBHOOK, VALIDATING_WEBHOOK};
use portico_registry::{CallError, Objects, Result, WebhookCall, WebhookUsers};

use super::answer::{ExpectedReview, ReviewAnswer, denial_status};
use super::configuration::Webhook;
use super::review_request::ReviewRequest;
use crate::matching::{MatchTarget, MatchedVersion, ObjectPair};
use crate::metrics::{ErrorType, HookLabels, Metrics};
use crate::request_view::RequestView;

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
pub(super) enum CallFailure {
    /// The webhook could not be called, so its failure policy decides. Contains upstream's reason and the code for metrics.
    NotCalled(String, u16),
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
    pub(super) async fn request_view<'p>(
        &self,
        webhook: &Webhook,
        version: MatchedVersion,
        pair: ObjectPair<'p>,
    ) -> Result<Option<RequestView<'p>>> {
        if !webhook.constraints.match_selectors(self.objects, self.target, pair).await? {
            return Ok(None);
        }
        let view = RequestView::convert(self.objects, self.target, version, pair).await?;
        Ok(self.matches_conditions(webhook, &view).await?.then_some(view))
    }

    /// True if the match conditions hold; if they fail, the failure policy decides.
    pub(super) async fn matches_conditions(&self, webhook: &Webhook, view: &RequestView<'_>) -> Result<bool> {
        let labels = self.metric_labels(webhook);
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let started = Instant::now();
        let subject = view.subject(self.objects, self.target);
        let conditions =
            |conditions: &MatchConditions, subject: &EvaluationInput<'_>| conditions.evaluate(subject);
        let (matched, _) =
            self.target.evaluate(self.objects, &webhook.conditions, &subject, conditions).await?;
        self.metrics.observe_conditions(labels, KIND, started.elapsed());
        match matched {
            MatchResult::Yes => Ok(true),
            MatchResult::No => {
                self.metrics.count_exclusion(labels, KIND);
                Ok(false)
            }
            MatchResult::Failed(error) => {
                self.metrics.count_condition_error(labels, KIND);
                if !webhook.fails_closed {
                    return Ok(false);
                }
                let (resource, name) = (&self.target.resource.group_resource(), self.target.attributes.name);
                Err(Box::new(Status::forbidden(resource, name, &error)))
            }
        }
    }

    /// Calls a webhook; `process` handles the answer within the measured time and the concurrency limit of the call.
    ///
    /// # Errors
    /// The request is not admitted. Returns `None` if the call failed and the failure policy is `Ignore`.
    pub(super) async fn call<T>(
        &self,
        webhook: &Webhook,
        view: &RequestView<'_>,
        process: impl AsyncFnOnce(ReviewAnswer) -> Result<T, CallFailure>,
    ) -> Result<Option<T>> {
        let started = Instant::now();
        let name = if self.mutates { MUTATING_WEBHOOK } else { VALIDATING_WEBHOOK };
        let span = spans::child(name);
        span.set_attribute("webhook", webhook.name.to_string());
        span.set_attribute("resource", self.target.resource.resource.to_string());
        let outcome = match slow_trace::part(name, span.instrument(self.request_review(webhook, view))).await
        {
            Ok(answer) => process(answer).await,
            Err(failure) => Err(failure),
        };
        let (labels, duration) = (self.metric_labels(webhook), started.elapsed());
        let (error, code, status) = match outcome {
            Ok(value) => {
                self.metrics.observe_admitted_call(
                    &webhook.admitted_calls,
                    self.target.attributes.operation,
                    labels,
                    duration,
                );
                return Ok(Some(value));
            }
            Err(CallFailure::NotCalled(reason, code)) => {
                let message = format!("failed calling webhook {:?}: {reason}", webhook.name);
                report(webhook, &reason);
                if !webhook.fails_closed {
                    self.metrics.observe_call(labels, None, code, duration);
                    self.metrics.count_fail_open(labels);
                    return Ok(None);
                }
                (ErrorType::Calling, code, Box::new(Status::internal(message)))
            }
            Err(CallFailure::Denied(status)) => (ErrorType::None, status.code, status),
            Err(CallFailure::Refused(status)) => (ErrorType::Server, 0, status),
        };
        self.metrics.observe_call(labels, Some(error), code, duration);
        Err(status)
    }

    async fn request_review(
        &self,
        webhook: &Webhook,
        view: &RequestView<'_>,
    ) -> Result<ReviewAnswer, CallFailure> {
        if self.target.attributes.is_dry_run() && !webhook.accepts_dry_run {
            let message = format!("admission webhook {:?} does not support dry run", webhook.name);
            return Err(CallFailure::Refused(Box::new(Status::bad_request(message))));
        }
        let Some(version) = webhook.version else {
            let message = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(CallFailure::NotCalled(message.to_owned(), 400));
        };
        let Some(webhooks) = self.objects.webhooks() else {
            return Err(CallFailure::NotCalled(
                "webhooks cannot be called before the server has started".to_owned(),
                503,
            ));
        };
        let ReviewRequest { uid, body } = ReviewRequest::new(version, view);
        let call = WebhookCall {
            endpoint: &webhook.endpoint,
            users: self.users,
            body,
            max_response_bytes: webhooks.limits().max_review_bytes,
        };
        let body = webhooks.post(call).await.map_err(call_failure)?;
        let answer = ExpectedReview { version, uid: &uid, mutates: self.mutates }.read(&body);
        let answer = answer.map_err(|error| CallFailure::NotCalled(error, 503))?;
        webhook.health.record_answer();
        if answer.allowed {
            return Ok(answer);
        }
        self.annotate(webhook, &answer);
        let status = denial_status(&webhook.name, answer.denial).with_warnings(answer.warnings);
        Err(CallFailure::Denied(status))
    }

    /// Adds the audit annotations of a webhook.
    pub(super) fn annotate(&self, webhook: &Webhook, answer: &ReviewAnswer) {
        let annotations = &self.target.attributes.context.annotations;
        for (key, value) in &answer.annotations {
            annotations.note(format!("{}/{key}", webhook.name), value.clone());
        }
    }

    fn metric_labels<'w>(&self, webhook: &'w Webhook) -> HookLabels<'w> {
        HookLabels {
            name: &webhook.name,
            step: if self.mutates { "admit" } else { "validating" },
            operation: self.target.attributes.operation_name(),
        }
    }
}

/// Logs the first of consecutive failures as a warning and the following ones at debug level.
fn report(webhook: &Webhook, error: &str) {
    let name = &webhook.name;
    let failure_policy = if webhook.fails_closed { "Fail" } else { "Ignore" };
    if webhook.health.record_failure(error) {
        tracing::warn!(webhook = name, failure_policy, error, "admission webhook failed");
    } else {
        tracing::debug!(webhook = name, failure_policy, error, "admission webhook failed");
    }
}

fn call_failure(error: CallError) -> CallFailure {
    let (reason, code) = match &error {
        CallError::Configuration(_) => ("could not get REST client", 500),
        CallError::Exchange { .. } | CallError::Broken(_) => ("failed to call webhook", 503),
        CallError::Refused { code, .. } => ("failed to call webhook", *code),
    };
    CallFailure::NotCalled(format!("{reason}: {error}"), code)
}
