//! HSTS (`--strict-transport-security-directives`): the directives, joined, unless a handler set its own.

use http::Response;
use http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// See the module.
#[derive(Debug)]
pub struct Hsts {
    directives: HeaderValue,
}

/// A directive that upstream does not know.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid value {0:?}, allowed values: max-age=expireTime, includeSubDomains, preload")]
pub struct BadDirective(pub String);

impl Hsts {
    /// The filter for these directives; none when there are none.
    ///
    /// # Errors
    /// [`BadDirective`] for anything but `max-age=N`, `includeSubDomains`, `preload`.
    pub fn new(directives: &[String]) -> Result<Option<Self>, BadDirective> {
        let known = |d: &&String| {
            matches!(d.as_str(), "includeSubDomains" | "preload")
                || d.strip_prefix("max-age=").is_some_and(|n| n.parse::<u64>().is_ok())
        };
        if let Some(bad) = directives.iter().find(|d| !known(d)) {
            return Err(BadDirective(bad.clone()));
        }
        let joined = directives.join("; ");
        let value = HeaderValue::from_str(&joined).map_err(|_| BadDirective(joined))?;
        Ok((!directives.is_empty()).then_some(Self { directives: value }))
    }
}

impl Filter for Hsts {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let mut response = next.handle(x).await;
        let entry = response.headers_mut().entry(STRICT_TRANSPORT_SECURITY);
        entry.or_insert_with(|| self.directives.clone());
        response
    }
}
