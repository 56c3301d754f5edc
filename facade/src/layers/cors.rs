//! CORS (`--cors-allowed-origins`): answers preflight requests before authentication, and names allowed origins (1.7).

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue, ORIGIN,
};
use http::{HeaderMap, Method, StatusCode};
use portico_kit::header_text;
use portico_kit::layer::{LayerFuture, ResponseTransform, TransformFuture};
use regex::Regex;
use tower::Service;

use crate::body::Body;
use crate::handler::Handler;
use crate::request::{Request, Response};

/// `--cors-allowed-origins`
#[derive(Clone, Debug)]
pub struct AllowedOrigins {
    origins: Arc<[Regex]>,
}

/// Service of the CORS layer.
#[derive(Clone, Debug)]
pub struct Cors<S> {
    allowed: AllowedOrigins,
    inner: S,
}

/// Error of an origin pattern.
#[derive(Debug, thiserror::Error)]
pub enum InvalidOrigin {
    /// An empty pattern.
    #[error("empty value in --cors-allowed-origins")]
    Empty,
    /// A pattern that could match in the middle of a hostile name.
    #[error(
        "regular expression {} does not pin to the start or end of host in the origin header",
        portico_gostd::strconv::quote(.0)
    )]
    Unanchored(String),
    /// An invalid regular expression.
    #[error("--cors-allowed-origins: {0}")]
    Regex(#[from] regex::Error),
}

impl AllowedOrigins {
    /// Compiles the patterns; `None` if there are none.
    ///
    /// # Errors
    /// [`InvalidOrigin`] for an empty, unanchored or invalid pattern.
    pub fn new(patterns: &[String]) -> Result<Option<Self>, InvalidOrigin> {
        let mut origins = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            if pattern.is_empty() {
                return Err(InvalidOrigin::Empty);
            }
            let start = pattern.contains('^') || pattern.contains("//");
            let end = pattern.contains('$') || pattern.contains(':');
            if !start || !end {
                return Err(InvalidOrigin::Unanchored(pattern.clone()));
            }
            origins.push(Regex::new(pattern)?);
        }
        Ok((!origins.is_empty()).then(|| Self { origins: origins.into() }))
    }

    /// Returns the `Origin` of a request if it is allowed.
    pub(super) fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let text = header_text::text(origin);
        self.origins.iter().any(|o| o.is_match(text)).then(|| origin.clone())
    }
}

impl<S> Cors<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, allowed: AllowedOrigins) -> Self {
        Self { allowed, inner }
    }
}

impl<S: Handler> Service<Request> for Cors<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = TransformFuture<LayerFuture<S::Future>, Option<AllowedOrigin>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let origin = self.allowed.allowed_origin(request.headers()).map(AllowedOrigin);
        let response = if origin.is_some() && request.method() == Method::OPTIONS {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            LayerFuture::from_response(Ok(response))
        } else {
            LayerFuture::from_inner(self.inner.call(request))
        };
        TransformFuture::new(response, origin)
    }
}

/// Origin of a request whose page may read the response.
pub struct AllowedOrigin(HeaderValue);

impl ResponseTransform<Response> for AllowedOrigin {
    fn apply(self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
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
