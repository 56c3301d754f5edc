//! EventRateLimit: limits the rate of events per server, namespace, user, or source and object.
//!
//! Upstream rules: plugin/pkg/admission/eventratelimit. As there, only events of the core group are counted.

mod bucket;
mod configuration;

use std::time::Instant;

use hashlink::LruCache;
use parking_lot::Mutex;
use portico_machinery::status::Reason;
use portico_machinery::{Status, aggregate};
use portico_registry::Objects;

use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};
use bucket::Bucket;
pub(crate) use configuration::EventRateLimitConfiguration;
use configuration::{Limit, LimitType};

/// EventRateLimit plugin with its token buckets.
pub(crate) struct EventRateLimit {
    limits: Vec<LimitBuckets>,
    started: Instant,
}

/// Limit with its buckets by key, of which the least recently used is evicted.
struct LimitBuckets {
    limit: Limit,
    buckets: Mutex<LruCache<Box<str>, Bucket>>,
}

impl EventRateLimit {
    pub(crate) fn new(configuration: &EventRateLimitConfiguration) -> Self {
        let enforced = |limit: &Limit| LimitBuckets {
            limit: *limit,
            buckets: Mutex::new(LruCache::new(limit.max_buckets())),
        };
        Self { limits: configuration.limits.iter().map(enforced).collect(), started: Instant::now() }
    }

    /// Takes a token from the bucket of each limit; returns the messages of the exhausted limits.
    fn refusals(&self, request: &ValidationRequest<'_>) -> Vec<String> {
        let since = self.started.elapsed();
        let refusal = |enforced: &LimitBuckets| {
            let key = bucket_key(enforced.limit.ty, request);
            let mut buckets = enforced.buckets.lock();
            let result = match buckets.get_mut(&*key) {
                Some(bucket) => bucket.try_take(&enforced.limit, since),
                None => {
                    let mut bucket = Bucket::full(&enforced.limit, since);
                    let result = bucket.try_take(&enforced.limit, since);
                    buckets.insert(key.as_str().into(), bucket);
                    result
                }
            };
            (!result).then(|| format!("limit reached on type {} for key {key}", enforced.limit.ty.name()))
        };
        self.limits.iter().filter_map(refusal).collect()
    }
}

impl Plugin for EventRateLimit {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "events", "")]
    }

    fn validate<'a>(&'a self, _objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            if request.attributes.is_dry_run() {
                return Ok(Vec::new());
            }
            let refusals = self.refusals(&request);
            if refusals.is_empty() {
                return Ok(Vec::new());
            }
            let message = format!("Too many requests: {}", aggregate(refusals));
            Err(Box::new(Status::failure(Reason::TooManyRequests, message)))
        })
    }
}

/// Returns the key of the bucket from which a limit of this type takes the token for an event.
fn bucket_key(ty: LimitType, request: &ValidationRequest<'_>) -> String {
    match ty {
        LimitType::Server => String::new(),
        LimitType::Namespace => request.attributes.namespace.to_owned(),
        LimitType::User => request.attributes.context.user.name.clone(),
        LimitType::SourceAndObject => {
            let (source, object) = (request.new.at(&["source"]), request.new.at(&["involvedObject"]));
            let of_source = ["component", "host"].map(|field| source.field(field).str());
            let of_object = ["kind", "namespace", "name", "uid", "apiVersion"];
            of_source.into_iter().chain(of_object.map(|field| object.field(field).str())).collect()
        }
    }
}
