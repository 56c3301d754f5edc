//! CORS (`--cors-allowed-origins`): answers preflights before authentication, and names allowed origins (1.7).

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue, ORIGIN,
};
use http::{HeaderMap, Method, Response, StatusCode};
use regex::Regex;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// See the module.
#[derive(Debug)]
pub struct Cors {
    origins: Vec<Regex>,
}

/// An origin pattern that is refused at start.
#[derive(Debug, thiserror::Error)]
pub enum BadOrigin {
    /// An empty pattern.
    #[error("empty value in --cors-allowed-origins")]
    Empty,
    /// A pattern that could match in the middle of a hostile name.
    #[error("regular expression {0:?} does not pin to the start or end of host in the origin header")]
    Unanchored(String),
    /// No regular expression.
    #[error("--cors-allowed-origins: {0}")]
    Regex(#[from] regex::Error),
}

impl Cors {
    /// The filter for these patterns; none when there are none.
    ///
    /// # Errors
    /// [`BadOrigin`].
    pub fn new(patterns: &[String]) -> Result<Option<Self>, BadOrigin> {
        let mut origins = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            if pattern.is_empty() {
                return Err(BadOrigin::Empty);
            }
            let start = pattern.contains('^') || pattern.contains("//");
            let end = pattern.contains('$') || pattern.contains(':');
            if !start || !end {
                return Err(BadOrigin::Unanchored(pattern.clone()));
            }
            origins.push(Regex::new(pattern)?);
        }
        Ok((!origins.is_empty()).then_some(Self { origins }))
    }

    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let text = origin.to_str().ok()?;
        self.origins.iter().any(|o| o.is_match(text)).then(|| origin.clone())
    }
}

impl Filter for Cors {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let Some(origin) = self.allowed(&x.parts.headers) else { return next.handle(x).await };
        let mut response = if x.parts.method == Method::OPTIONS {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        } else {
            next.handle(x).await
        };
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
            (
                ACCESS_CONTROL_ALLOW_HEADERS,
                "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
                 If-Modified-Since",
            ),
            (ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
            (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
