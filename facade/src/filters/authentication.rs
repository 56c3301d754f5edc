//! Authentication: names the caller, takes the credentials off the request, and answers 401 to bad ones.
//!
//! A refusal is negotiated like any other; 429 when more unknown tokens come than are reviewed. Over HTTP/2 a 401 closes the
//! connection, as do answers to anonymous callers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, Response};
use portico_auth::authn::{Reviewer, without_token};
use portico_auth::{Credentials, HeaderValues, Outcome, Union};
use portico_machinery::{Status, aggregate};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::metrics::access::{Authenticated, AuthenticationMetrics};
use crate::respond;

/// See the module.
pub struct Authentication {
    /// Who knows callers; replaced as a whole on a reload.
    pub union: Arc<ArcSwap<Union>>,
    /// Who knows what tokens stand for.
    pub reviewer: Arc<dyn Reviewer>,
    /// How it ends, and how long it takes.
    pub metrics: AuthenticationMetrics,
}

/// HTTP headers as `portico_auth` reads them.
pub(super) struct Headers<'a>(pub(super) &'a HeaderMap);

impl HeaderValues for Headers<'_> {
    fn visit(&self, visit: &mut dyn FnMut(&str, &str)) {
        for (name, value) in self.0 {
            if let Ok(value) = value.to_str() {
                visit(name.as_str(), value);
            }
        }
    }

    fn values(&self, name: &str) -> Vec<String> {
        let all = self.0.get_all(name).iter();
        all.filter_map(|v| v.to_str().ok()).map(str::to_owned).collect()
    }
}

impl Filter for Authentication {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let begin = std::time::Instant::now();
        let mut found = authenticate(&self.union.load(), x);
        if let Outcome::Ask(token) = &found.outcome {
            let union = self.union.load_full();
            if let Err(error) = union.reviewed(token, &*self.reviewer).await {
                self.metrics.done(Authenticated::Refused, begin.elapsed());
                tracing::debug!(peer = %x.connection.peer, %error, "authentication failed");
                return respond::status(x, &Status::too_many_requests(error.to_string(), 1));
            }
            found = authenticate(&union, x);
        }
        strip(&self.union.load(), &mut x.parts.headers);
        self.metrics.done(ended(&found.outcome), begin.elapsed());
        if let Some(warning) = found.warning {
            x.warnings.push(warning.to_owned());
        }
        match found.outcome {
            Outcome::Authenticated(user, _) => {
                x.user = Some(user);
                next.handle(x).await
            }
            Outcome::Anonymous(user) => {
                x.user = Some(user);
                let (http2, connection) = (x.is_http2(), x.connection.clone());
                let mut response = next.handle(x).await;
                if http2 {
                    connection.close_after(http2, &mut response);
                }
                response
            }
            Outcome::Unauthorized(why) => {
                tracing::debug!(peer = %x.connection.peer, message = why.audit_message(), errors = aggregate(&why.errors),
                    "authentication failed");
                refuse(x)
            }
            Outcome::Ask(_) => {
                tracing::debug!(peer = %x.connection.peer, "authentication failed: a token could not be reviewed");
                refuse(x)
            }
        }
    }
}

/// Upstream's three ends: somebody, nobody, and credentials that are wrong.
fn ended(outcome: &Outcome) -> Authenticated<'_> {
    match outcome {
        Outcome::Authenticated(user, _) | Outcome::Anonymous(user) => Authenticated::As(&user.name),
        Outcome::Unauthorized(why) if why.errors.is_empty() => Authenticated::Nobody,
        Outcome::Unauthorized(_) | Outcome::Ask(_) => Authenticated::Refused,
    }
}

fn refuse(x: &RequestContext) -> Response<Body> {
    let mut response = respond::status(x, &Status::unauthorized());
    if x.is_http2() {
        x.connection.close_after(true, &mut response);
    }
    response
}

fn authenticate(union: &Union, x: &RequestContext) -> portico_auth::Authentication {
    let headers = &x.parts.headers;
    let websocket = headers.get(UPGRADE).is_some_and(|u| u.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let protocols = websocket.then(|| Headers(headers).values(SEC_WEBSOCKET_PROTOCOL.as_str()).join(","));
    union.authenticate(&Credentials {
        authorization: headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok()),
        websocket_protocols: protocols.as_deref().filter(|p| !p.is_empty()),
        peer: x.connection.chain.as_ref(),
        headers: &Headers(headers),
    })
}

/// Takes credentials and identity headers off, whether or not they were believed.
fn strip(union: &Union, headers: &mut HeaderMap) {
    let consumed: Vec<HeaderName> =
        headers.keys().filter(|name| union.consumes_header(name.as_str())).cloned().collect();
    for name in consumed {
        headers.remove(&name);
    }
    if headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        let kept = without_token(&Headers(headers).values(SEC_WEBSOCKET_PROTOCOL.as_str()).join(","));
        match HeaderValue::from_str(&kept) {
            Ok(kept) if !kept.is_empty() => {
                headers.insert(SEC_WEBSOCKET_PROTOCOL, kept);
            }
            _ => {
                headers.remove(SEC_WEBSOCKET_PROTOCOL);
            }
        }
    }
}
