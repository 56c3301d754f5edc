//! Conversion by webhook: batches of objects, and errors of failed reviews.

use std::time::{Duration, Instant};

use portico_machinery::object::cut;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};

use super::conversions::Conversions;
use super::health::FailingWebhook;
use super::review::{self, Failure, Fault, Review, ReviewVersion};
use super::{Custom, Webhook};
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
/// See [`SLOW`].
const SLOW_OBJECT: Duration = Duration::from_millis(8);

/// Objects to convert in one call.
struct Asked<'a> {
    conversions: &'a Conversions,
    custom: &'a Custom,
    webhook: &'a Webhook,
    wanted: &'a str,
    /// True if a single object was requested instead of a list.
    single: bool,
}

impl Objects {
    /// Converts objects to another version by a webhook; objects that already have the version are not sent.
    pub(super) async fn ask_to_convert(
        &self,
        custom: &Custom,
        webhook: &Webhook,
        wanted: &str,
        mut objects: Vec<Object>,
    ) -> Result<Vec<Object>> {
        let late: Vec<usize> = (0..objects.len()).filter(|at| objects[*at].api_version() != wanted).collect();
        if late.is_empty() {
            return Ok(objects);
        }
        let conversions = self.conversions.get().ok_or_else(|| {
            Box::new(
                Status::unavailable("conversion webhooks cannot be called before the server has started")
                    .with_retry_after(1),
            )
        })?;
        let asked = Asked { conversions, custom, webhook, wanted, single: objects.len() == 1 };
        let sent: Vec<Object> = late.iter().map(|at| std::mem::take(&mut objects[*at])).collect();
        let outcome = asked.convert(&sent).await;
        let failed = outcome.as_ref().err().map(|why| asked.failing(why, (self.clock)().to_string()));
        custom.health.note(failed);
        let converted = outcome.map_err(|message| Box::new(Status::failure(Reason::Unknown, message)))?;
        for (at, object) in late.into_iter().zip(converted) {
            objects[at] = object;
        }
        Ok(objects)
    }
}

impl Asked<'_> {
    /// Converts the objects and records the duration. Errors have upstream's messages.
    async fn convert(&self, sent: &[Object]) -> Result<Vec<Object>, String> {
        let begun = Instant::now();
        let outcome = self.all(sent).await;
        let took = begun.elapsed();
        let from = sent.first().map(Object::api_version).unwrap_or_default();
        let name = self.custom.facts.name();
        self.conversions.observe(name, [version(from), version(self.wanted)], outcome.is_ok(), took);
        let objects = u32::try_from(sent.len()).unwrap_or(u32::MAX);
        if took > SLOW + SLOW_OBJECT * objects {
            let duration_ms = took.as_millis();
            tracing::info!(
                definition = name,
                version = self.wanted,
                objects,
                duration_ms,
                "conversion webhook is slow"
            );
        }
        outcome
    }

    async fn all(&self, sent: &[Object]) -> Result<Vec<Object>, String> {
        let version = ReviewVersion::first_of(&self.webhook.conversion_review_versions)
            .ok_or("no supported conversion review versions")?;
        let encoded: Vec<Vec<u8>> = sent.iter().map(Object::to_json).collect();
        let mut converted = Vec::with_capacity(sent.len());
        for batch in review::batches(&encoded, REVIEW_BYTES) {
            let begun = Instant::now();
            let outcome = self.review(version, &sent[batch.clone()], &encoded[batch]).await;
            self.conversions.count(outcome.as_ref().err().map(|failure| failure.fault), begun.elapsed());
            converted.extend(outcome.map_err(|failure| {
                let kind = sent.first().map(printed).unwrap_or_default();
                format!("conversion webhook for {kind} {}", failure.message)
            })?);
        }
        Ok(converted)
    }

    async fn review(
        &self,
        version: ReviewVersion,
        objects: &[Object],
        encoded: &[Vec<u8>],
    ) -> Result<Vec<Object>, Failure> {
        let uid = uuid::Uuid::new_v4().to_string();
        let question = review::question(version, &uid, self.wanted, encoded);
        let webhooks = &self.conversions.webhooks;
        let endpoint = || WebhookEndpoint::new(&self.webhook.client_config, TIMEOUT);
        let call = WebhookCall {
            endpoint: self.custom.endpoint.get_or_init(endpoint),
            users: &WebhookUsers::default(),
            body: question.into(),
            answer_bytes: webhooks.limits().answer_bytes,
        };
        let answer = webhooks.post(call).await;
        let answer =
            answer.map_err(|error| Failure { fault: Fault::Call, message: format!("failed: {error}") })?;
        Review { version, uid: &uid, wanted: self.wanted, objects, single: self.single }.read(&answer)
    }

    /// Failure for the health record, with a truncated message.
    fn failing(&self, message: &str, since: String) -> FailingWebhook {
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
fn printed(object: &Object) -> String {
    format!("{}, Kind={}", object.api_version(), object.kind())
}
