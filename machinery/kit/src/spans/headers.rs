//! Headers as carriers for OpenTelemetry's propagators.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector};

use crate::header_text;

/// Headers of a received request.
pub(super) struct HeaderExtractor<'a>(pub(super) &'a HeaderMap);

/// Headers of a request to send.
pub(super) struct HeaderInjector<'a>(pub(super) &'a mut HeaderMap);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(header_text::text)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

impl Injector for HeaderInjector<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            // An empty trace state has no meaning, and the client's trace state does not belong to a new parent.
            if value.is_empty() {
                self.0.remove(name);
            } else {
                self.0.insert(name, value);
            }
        }
    }
}
