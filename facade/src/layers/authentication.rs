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
use portico_auth::authn::{TokenReviewBackend, without_token};
use portico_auth::{AuthenticatorChain, AuthnMethod, AuthnOutcome, Credentials};
use portico_kit::layer::{LayerFuture, ResponseTransform, TransformFuture};
use portico_machinery::{Reason, Status, aggregate};
use tower::Service;

use super::audit;
use super::cors::AllowedOrigins;
use super::foreign_page::is_foreign;
use super::header_values::Headers;
use crate::connection::Connection;
use crate::console_paths::is_page;
use crate::handler::Handler;
use crate::metrics::access::{AuthenticationMetrics, AuthenticationResult};
use crate::request::{Caller, Request, RequestView, Response};
use crate::respond;
use portico_auditor::{AuditedRequest, Auditor};

/// Settings and state of the authentication layer.
pub struct Authenticator {
    /// Reviews tokens that cannot be verified here.
    pub reviewer: Arc<dyn TokenReviewBackend>,
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
    type Future = LayerFuture<TransformFuture<S::Future, Option<CloseConnection>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let authentication = authenticate(&request);
        if let AuthnOutcome::NeedsReview(token) = authentication.outcome {
            let (authenticator, mut inner) = (self.authenticator.clone(), self.inner.clone());
            return LayerFuture::from_boxed(async move {
                match authenticator.review_and_admit(request, &token, begin).await {
                    Ok((request, after)) => TransformFuture::new(inner.call(request), after).await,
                    Err(refused) => Ok(refused.into_response().await),
                }
            });
        }
        if presents_token(&authentication.outcome) {
            self.authenticator.metrics.record_token(true, begin.elapsed());
        }
        match self.authenticator.admit(authentication, request, begin) {
            Ok((request, after)) => {
                LayerFuture::from_inner(TransformFuture::new(self.inner.call(request), after))
            }
            Err(refused) => LayerFuture::from_boxed(async move { Ok(refused.into_response().await) }),
        }
    }
}

/// Closes the connection after this response.
pub struct CloseConnection(Arc<Connection>);

impl ResponseTransform<Response> for CloseConnection {
    fn apply(self, response: Response) -> Response {
        self.0.go_away();
        response
    }
}

/// An authenticated request, and the action after its response; or the refusal.
type AdmitResult = Result<(Request, Option<CloseConnection>), Box<AuthenticationRefusal>>;

/// Refusal of a request, and its audit event.
struct AuthenticationRefusal {
    response: Response,
    audited: Option<AuditedRequest>,
}

impl AuthenticationRefusal {
    /// Records the refusal, waits as the modes of the audit backends require, and returns the response.
    async fn into_response(self) -> Response {
        if let Some(audited) = self.audited {
            audited.process(Stage::ResponseStarted).await;
        }
        self.response
    }
}

impl Authenticator {
    /// Reviews a token, then authenticates the request with the result.
    async fn review_and_admit(&self, request: Request, token: &str, begin: Instant) -> AdmitResult {
        let client = request.connection().peer.ip();
        let reviewed =
            request.active_config().authenticators.review_token(token, client, &*self.reviewer).await;
        self.metrics.record_token(false, begin.elapsed());
        if let Err(error) = reviewed {
            self.metrics.record_result(AuthenticationResult::InvalidCredentials, begin.elapsed());
            tracing::debug!(peer = %request.connection().peer, %error, "authentication failed");
            let status = Status::too_many_requests(error.to_string(), 1);
            let response = respond::status(&request, &status);
            return Err(self.refusal(&request, response));
        }
        let authentication = authenticate(&request);
        self.admit(authentication, request, begin)
    }

    /// Attaches the caller to the request and removes the credentials.
    fn admit(
        &self,
        authentication: portico_auth::Authentication,
        mut request: Request,
        begin: Instant,
    ) -> AdmitResult {
        let authenticators = Arc::clone(&request.active_config().authenticators);
        strip(&authenticators, request.headers_mut());
        let took = begin.elapsed();
        self.metrics.record_result(metric_result(&authentication.outcome), took);
        if let Some(not_after) =
            request.connection().peer_certificates.as_ref().and_then(|chain| chain.leaf_not_after())
        {
            self.metrics.record_certificate(not_after);
        }
        // Only this layer sets it.
        let _ = request.record().authentication_took.set(took);
        if let Some(warning) = authentication.warning {
            request.record().warn([warning.to_owned()]);
        }
        let (user, anonymous) = match authentication.outcome {
            AuthnOutcome::Authenticated(
                _,
                AuthnMethod::ClientCertificate | AuthnMethod::InternalCertificate,
            ) if is_foreign(request.method(), request.uri(), request.headers(), self.cors.as_ref()) => {
                let refusal = respond::forbidden(&request, &foreign_page_status());
                return Err(self.refusal(&request, refusal));
            }
            AuthnOutcome::Authenticated(user, _) => (user, false),
            AuthnOutcome::Anonymous(user) => (user, true),
            refused => {
                let response = refuse(&request, &refused);
                return Err(self.refusal(&request, response));
            }
        };
        if !anonymous {
            request.connection().set_authenticated();
        }
        request.extensions_mut().insert(Caller(user));
        let loads_page =
            || self.console && is_page(&request.info().path) && request.connection().allows_page_part();
        let should_close = anonymous && request.is_http2() && !loads_page();
        let after = should_close.then(|| CloseConnection(request.connection().clone()));
        Ok((request, after))
    }

    fn refusal(&self, request: &Request, response: Response) -> Box<AuthenticationRefusal> {
        let audited = audit::refusal_event(self.auditor.as_ref(), request, &response);
        Box::new(AuthenticationRefusal { response, audited })
    }
}

/// The 403 for a request that a page of another origin sends with the browser's certificate.
fn foreign_page_status() -> Status {
    let message = "a page of another origin may not use a client certificate (--cors-allowed-origins names origins that may)";
    Status::failure(Reason::Forbidden, message)
}

/// True if the result is based on a token.
fn presents_token(outcome: &AuthnOutcome) -> bool {
    match outcome {
        AuthnOutcome::Authenticated(_, method) => {
            matches!(method, AuthnMethod::BearerToken | AuthnMethod::WebSocketToken)
        }
        AuthnOutcome::Unauthorized(why) => why.attempted_methods.contains(&"bearer"),
        AuthnOutcome::Anonymous(_) | AuthnOutcome::NeedsReview(_) => false,
    }
}

/// Upstream's three results for metrics: a user, no credentials, or invalid credentials.
fn metric_result(outcome: &AuthnOutcome) -> AuthenticationResult<'_> {
    match outcome {
        AuthnOutcome::Authenticated(user, _) | AuthnOutcome::Anonymous(user) => {
            AuthenticationResult::User(&user.name)
        }
        AuthnOutcome::Unauthorized(why) if why.errors.is_empty() => AuthenticationResult::NoCredentials,
        AuthnOutcome::Unauthorized(_) | AuthnOutcome::NeedsReview(_) => {
            AuthenticationResult::InvalidCredentials
        }
    }
}

fn refuse(request: &Request, outcome: &AuthnOutcome) -> Response {
    let peer = request.connection().peer;
    match outcome {
        AuthnOutcome::Unauthorized(why) => tracing::debug!(
            %peer,
            attempted = why.attempted_methods.join(", "),
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
    request.active_config().authenticators.authenticate(&Credentials {
        authorization: headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
        websocket_protocols: protocols.as_deref().filter(|p| !p.is_empty()),
        peer: request.connection().peer_certificates.as_ref(),
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
        let protocols = without_token(&offered_protocols(headers));
        match HeaderValue::from_bytes(&protocols) {
            Ok(protocols) if !protocols.is_empty() => {
                headers.insert(SEC_WEBSOCKET_PROTOCOL, protocols);
            }
            _ => {
                headers.remove(SEC_WEBSOCKET_PROTOCOL);
            }
        }
    }
}
