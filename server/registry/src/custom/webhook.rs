//! Conversion by webhook: batches of objects, and errors of failed reviews.

use std::time::{Duration, Instant};

use portico_machinery::object::cut;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};

use super::review::{self, Failure, Fault, Review, ReviewVersion};
use super::webhook_converter::WebhookConverter;
use super::webhook_health::FailingWebhook;
use super::{ConversionWebhook, CustomVersion};
use crate::Result;
use crate::objects::Objects;
use crate::webhooks::{WebhookCall, WebhookEndpoint, WebhookUsers};

/// Time for a call of a conversion webhook.
///
/// Limit (Webhooks): 500, and Explain reports it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Objects in one ConversionReview, as JSON.
///
/// Limit (Webhooks, bytes): the rest is sent in further reviews.
const REVIEW_BYTES: usize = 16 << 20;
/// Duration of a conversion, plus [`SLOW_OBJECT`] for each object, above which it is logged (upstream's value).
const SLOW: Duration = Duration::from_millis(50);
/// Additional time for each object, see [`SLOW`].
const SLOW_OBJECT: Duration = Duration::from_millis(8);

/// Objects to convert in one call.
struct ConversionBatch<'a> {
    conversions: &'a WebhookConverter,
    custom: &'a CustomVersion,
    webhook: &'a ConversionWebhook,
    desired_api_version: &'a str,
    /// True if a single object was requested instead of a list.
    single: bool,
}

impl Objects {
    /// Converts objects to another version by a webhook; objects that already have the version are not sent.
    pub(super) async fn convert_by_webhook(
        &self,
        custom: &CustomVersion,
        webhook: &ConversionWebhook,
        desired_api_version: &str,
        mut objects: Vec<Object>,
    ) -> Result<Vec<Object>> {
        let indices: Vec<usize> =
            (0..objects.len()).filter(|index| objects[*index].api_version() != desired_api_version).collect();
        if indices.is_empty() {
            return Ok(objects);
        }
        let conversions = self.conversions.get().ok_or_else(|| {
            Box::new(
                Status::unavailable("conversion webhooks cannot be called before the server has started")
                    .with_retry_after(1),
            )
        })?;
        let batch =
            ConversionBatch { conversions, custom, webhook, desired_api_version, single: objects.len() == 1 };
        let sent: Vec<Object> = indices.iter().map(|index| std::mem::take(&mut objects[*index])).collect();
        let outcome = batch.convert(&sent).await;
        let failure = outcome
            .as_ref()
            .err()
            .map(|reason| batch.new_failing_webhook(reason, (self.clock)().to_string()));
        custom.health.record(failure);
        let converted = outcome.map_err(|message| Box::new(Status::failure(Reason::Unknown, message)))?;
        for (index, object) in indices.into_iter().zip(converted) {
            objects[index] = object;
        }
        Ok(objects)
    }
}

impl ConversionBatch<'_> {
    /// Converts the objects and records the duration. Errors have upstream's messages.
    async fn convert(&self, sent: &[Object]) -> Result<Vec<Object>, String> {
        let start = Instant::now();
        let outcome = self.convert_in_reviews(sent).await;
        let duration = start.elapsed();
        let from_version = sent.first().map(Object::api_version).unwrap_or_default();
        let name = self.custom.facts.name();
        self.conversions.observe_conversion(
            name,
            [version(from_version), version(self.desired_api_version)],
            outcome.is_ok(),
            duration,
        );
        let objects = u32::try_from(sent.len()).unwrap_or(u32::MAX);
        if duration > SLOW + SLOW_OBJECT * objects {
            let duration_ms = duration.as_millis();
            tracing::info!(
                definition = name,
                version = self.desired_api_version,
                objects,
                duration_ms,
                "conversion webhook is slow"
            );
        }
        outcome
    }

    async fn convert_in_reviews(&self, sent: &[Object]) -> Result<Vec<Object>, String> {
        let version = ReviewVersion::first_of(&self.webhook.conversion_review_versions)
            .ok_or("no supported conversion review versions")?;
        let encoded: Vec<Vec<u8>> = sent.iter().map(Object::to_json).collect();
        let mut converted = Vec::with_capacity(sent.len());
        for batch in review::batches(&encoded, REVIEW_BYTES) {
            let start = Instant::now();
            let outcome = self.call_webhook(version, &sent[batch.clone()], &encoded[batch]).await;
            self.conversions
                .observe_review(outcome.as_ref().err().map(|failure| failure.fault), start.elapsed());
            converted.extend(outcome.map_err(|failure| {
                let kind = sent.first().map(printed_kind).unwrap_or_default();
                format!("conversion webhook for {kind} {}", failure.message)
            })?);
        }
        Ok(converted)
    }

    async fn call_webhook(
        &self,
        version: ReviewVersion,
        objects: &[Object],
        encoded: &[Vec<u8>],
    ) -> Result<Vec<Object>, Failure> {
        let uid = uuid::Uuid::new_v4().to_string();
        let request = review::encode_request(version, &uid, self.desired_api_version, encoded);
        let webhooks = &self.conversions.webhooks;
        let endpoint = || WebhookEndpoint::new(&self.webhook.client_config, TIMEOUT);
        let call = WebhookCall {
            endpoint: self.custom.endpoint.get_or_init(endpoint),
            users: &WebhookUsers::default(),
            body: request.into(),
            max_response_bytes: webhooks.limits().max_response_bytes,
        };
        let response = webhooks.post(call).await;
        let response =
            response.map_err(|error| Failure { fault: Fault::Call, message: format!("failed: {error}") })?;
        Review {
            version,
            uid: &uid,
            desired_api_version: self.desired_api_version,
            objects,
            single: self.single,
        }
        .read(&response)
    }

    /// Failure for the health record, with a truncated message.
    fn new_failing_webhook(&self, message: &str, since: String) -> FailingWebhook {
        let facts = &self.custom.facts;
        let (definition, group) = (facts.name().to_owned(), facts.group().to_owned());
        FailingWebhook { definition, group, since, message: cut(message.to_owned()) }
    }
}

/// Version part of an `apiVersion`.
fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// Kind as printed by upstream's messages.
fn printed_kind(object: &Object) -> String {
    format!("{}, Kind={}", object.api_version(), object.kind())
}
