//! Authentication: identifies the caller, removes the credentials from the request, and refuses invalid ones with 401.
//!
//! Refusals are negotiated like all others; 429 if more unknown tokens arrive than are reviewed. Over HTTP/2, a 401 closes the
//! connection, and so do responses to anonymous callers, except for a bounded number of parts of the console page.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use portico_audit::Stage;
use portico_auth::authn::{Reviewer, without_token};
use portico_auth::{AuthenticatorChain, Credentials, Method, Outcome};
use portico_kit::layer::{AfterResponse, OnResponse, Step};
use portico_machinery::{Reason, Status, aggregate};
use tower::Service;

use super::audit;
use super::cors::AllowedOrigins;
use super::foreign_page::is_foreign;
use super::header_values::Headers;
use crate::connection::Connection;
use crate::console_paths::is_page;
use crate::handler::Handler;
use crate::metrics::access::{Authenticated, AuthenticationMetrics};
use crate::request::{Caller, Request, RequestView, Response};
use crate::respond;
use portico_auditor::{Audited, Auditor};

/// Settings and state of the authentication layer.
pub struct Authenticator {
    /// Reviews tokens that cannot be verified here.
    pub reviewer: Arc<dyn Reviewer>,
    /// Results and durations.
    pub metrics: AuthenticationMetrics,
    /// True if anonymous callers can load the console page without the connection being closed.
    pub console: bool,
    /// Other origins whose pages may use client certificates.
    pub cors: Option<AllowedOrigins>,
    /// Records refusals.
    pub auditor: Option<Arc<Auditor>>,
}

/// Service of the authentication layer.
#[derive(Clone)]
pub struct Authentication<S> {
    authenticator: Arc<Authenticator>,
    inner: S,
}

impl<S> Authentication<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, authenticator: Arc<Authenticator>) -> Self {
        Self { authenticator, inner }
    }
}

impl<S: Handler> Service<Request> for Authentication<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Step<OnResponse<S::Future, Option<GoAway>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let found = authenticate(&request);
        if let Outcome::Ask(token) = found.outcome {
            let (authenticator, mut inner) = (self.authenticator.clone(), self.inner.clone());
            return Step::waiting(async move {
                match authenticator.reviewed(request, &token, begin).await {
                    Ok((request, after)) => OnResponse::new(inner.call(request), after).await,
                    Err(refused) => Ok(refused.answer().await),
                }
            });
        }
        if presents_token(&found.outcome) {
            self.authenticator.metrics.token(true, begin.elapsed());
        }
        match self.authenticator.admit(found, request, begin) {
            Ok((request, after)) => Step::passed(OnResponse::new(self.inner.call(request), after)),
            Err(refused) => Step::waiting(async move { Ok(refused.answer().await) }),
        }
    }
}

/// Closes the connection after this response.
pub struct GoAway(Arc<Connection>);

impl AfterResponse<Response> for GoAway {
    fn after(self, response: Response) -> Response {
        self.0.go_away();
        response
    }
}

/// An authenticated request, and the action after its response; or the refusal.
type Admitted = Result<(Request, Option<GoAway>), Box<Refused>>;

/// Refusal of a request, and its audit event.
struct Refused {
    response: Response,
    audited: Option<Audited>,
}

impl Refused {
    /// Records the refusal, waits as the modes of the audit backends require, and returns the response.
    async fn answer(self) -> Response {
        if let Some(audited) = self.audited {
            audited.process(Stage::ResponseStarted).await;
        }
        self.response
    }
}

impl Authenticator {
    /// Reviews a token, then authenticates the request with the result.
    async fn reviewed(&self, request: Request, token: &str, begin: Instant) -> Admitted {
        let client = request.connection().peer.ip();
        let reviewed = request.in_force().authenticators.reviewed(token, client, &*self.reviewer).await;
        self.metrics.token(false, begin.elapsed());
        if let Err(error) = reviewed {
            self.metrics.done(Authenticated::Refused, begin.elapsed());
            tracing::debug!(peer = %request.connection().peer, %error, "authentication failed");
            let status = Status::too_many_requests(error.to_string(), 1);
            let response = respond::status(&request, &status);
            return Err(self.refused(&request, response));
        }
        let found = authenticate(&request);
        self.admit(found, request, begin)
    }

    /// Attaches the caller to the request and removes the credentials.
    fn admit(&self, found: portico_auth::Authentication, mut request: Request, begin: Instant) -> Admitted {
        let authenticators = Arc::clone(&request.in_force().authenticators);
        strip(&authenticators, request.headers_mut());
        let took = begin.elapsed();
        self.metrics.done(ended(&found.outcome), took);
        if let Some(not_after) = request.connection().chain.as_ref().and_then(|chain| chain.leaf_not_after())
        {
            self.metrics.certificate(not_after);
        }
        // Only this layer sets it.
        let _ = request.record().authentication_took.set(took);
        if let Some(warning) = found.warning {
            request.record().warn([warning.to_owned()]);
        }
        let (user, anonymous) = match found.outcome {
            Outcome::Authenticated(_, Method::ClientCertificate | Method::InternalCertificate)
                if is_foreign(request.method(), request.uri(), request.headers(), self.cors.as_ref()) =>
            {
                let refusal = respond::forbidden(&request, &foreign_page());
                return Err(self.refused(&request, refusal));
            }
            Outcome::Authenticated(user, _) => (user, false),
            Outcome::Anonymous(user) => (user, true),
            refused => {
                let response = refuse(&request, &refused);
                return Err(self.refused(&request, response));
            }
        };
        if !anonymous {
            request.connection().set_known();
        }
        request.extensions_mut().insert(Caller(user));
        let loads_page =
            || self.console && is_page(&request.info().path) && request.connection().takes_page_part();
        let goes = anonymous && request.is_http2() && !loads_page();
        let after = goes.then(|| GoAway(request.connection().clone()));
        Ok((request, after))
    }

    fn refused(&self, request: &Request, response: Response) -> Box<Refused> {
        let audited = audit::refused(self.auditor.as_ref(), request, &response);
        Box::new(Refused { response, audited })
    }
}

/// The 403 for a request that a page of another origin sends with the browser's certificate.
fn foreign_page() -> Status {
    let message = "a page of another origin may not use a client certificate (--cors-allowed-origins names origins that may)";
    Status::failure(Reason::Forbidden, message)
}

/// True if the result is based on a token.
fn presents_token(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Authenticated(_, method) => matches!(method, Method::BearerToken | Method::WebSocketToken),
        Outcome::Unauthorized(why) => why.attempted.contains(&"bearer"),
        Outcome::Anonymous(_) | Outcome::Ask(_) => false,
    }
}

/// Upstream's three results for metrics: a user, no credentials, or invalid credentials.
fn ended(outcome: &Outcome) -> Authenticated<'_> {
    match outcome {
        Outcome::Authenticated(user, _) | Outcome::Anonymous(user) => Authenticated::As(&user.name),
        Outcome::Unauthorized(why) if why.errors.is_empty() => Authenticated::Nobody,
        Outcome::Unauthorized(_) | Outcome::Ask(_) => Authenticated::Refused,
    }
}

fn refuse(request: &Request, outcome: &Outcome) -> Response {
    let peer = request.connection().peer;
    match outcome {
        Outcome::Unauthorized(why) => tracing::debug!(
            %peer,
            attempted = why.attempted.join(", "),
            error = aggregate(&why.errors),
            "authentication failed"
        ),
        _ => tracing::debug!(%peer, "authentication failed: cannot review the token"),
    }
    if request.is_http2() {
        request.connection().go_away();
    }
    respond::status(request, &Status::unauthorized())
}

fn authenticate(request: &Request) -> portico_auth::Authentication {
    let headers = request.headers();
    let websocket = headers.get(UPGRADE).is_some_and(|u| u.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let protocols = websocket.then(|| offered_protocols(headers));
    request.in_force().authenticators.authenticate(&Credentials {
        authorization: headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
        websocket_protocols: protocols.as_deref().filter(|p| !p.is_empty()),
        peer: request.connection().chain.as_ref(),
        headers: &Headers(headers),
        path: Some(&request.info().path),
    })
}

/// WebSocket subprotocols that the client offers; one of them can contain its token.
fn offered_protocols(headers: &HeaderMap) -> Vec<u8> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().map(HeaderValue::as_bytes);
    values.collect::<Vec<_>>().join(&b","[..])
}

/// Removes credentials and identity headers, whether or not they were accepted.
fn strip(authenticators: &AuthenticatorChain, headers: &mut HeaderMap) {
    let consumed: Vec<HeaderName> =
        headers.keys().filter(|name| authenticators.consumes_header(name.as_str())).cloned().collect();
    for name in consumed {
        headers.remove(&name);
    }
    if headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        let kept = without_token(&offered_protocols(headers));
        match HeaderValue::from_bytes(&kept) {
            Ok(kept) if !kept.is_empty() => {
                headers.insert(SEC_WEBSOCKET_PROTOCOL, kept);
            }
            _ => {
                headers.remove(SEC_WEBSOCKET_PROTOCOL);
            }
        }
    }
}
