//! Identification of callers by certificate, bearer token or in-process trust, and of the users that facades forward.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use portico_auth::authn::{FACADES_GROUP, TokenReviewBackend};
use portico_auth::forwarded::{LocalTrust, LocalTrustVerifier};
use portico_auth::headers::NoHeaders;
use portico_auth::impersonate::consumes_header;
use portico_auth::{AuthenticatorChain, AuthnMethod, AuthnOutcome, Authorizer, Credentials};
use portico_machinery::{Status, UserInfo};
use portico_proto::identity::ForwardedCaller;
use portico_proto::rpc_status::to_rpc;
use tonic::body::Body;
use tonic::metadata::MetadataMap;

use super::caller::Caller;
use crate::listen::ConnectionInfo;

/// Name of the in-process facade.
const IN_PROCESS: &str = "in-process";

/// Trust of the chain: authenticators (replaced on reload), the authorizer, and the in-process trust.
pub struct Identities {
    authenticators: ArcSwap<AuthenticatorChain>,
    reviewer: OnceLock<Arc<dyn TokenReviewBackend>>,
    authorizer: Arc<dyn Authorizer>,
    local: LocalTrustVerifier,
}

impl Identities {
    /// Creates identities from these parts.
    #[must_use]
    pub fn new(
        authenticators: AuthenticatorChain,
        authorizer: Arc<dyn Authorizer>,
        local: LocalTrustVerifier,
    ) -> Self {
        Self {
            authenticators: ArcSwap::from_pointee(authenticators),
            reviewer: OnceLock::new(),
            authorizer,
            local,
        }
    }

    /// Sets the reviewer of tokens. Later calls have no effect.
    pub fn set_reviewer(&self, reviewer: Arc<dyn TokenReviewBackend>) {
        let _ = self.reviewer.set(reviewer);
    }

    /// Reviews the token of a client, so that the next authentication of the token succeeds without waiting.
    pub(super) async fn review_token(&self, token: &str, client: IpAddr) -> Result<(), tonic::Status> {
        let authenticators = self.authenticators.load_full();
        let Some(reviewer) = self.reviewer.get() else { return Ok(()) };
        let reviewed = authenticators.review_token(token, client, &**reviewer).await;
        reviewed.map_err(|error| to_rpc(&Status::too_many_requests(error.to_string(), 1)))
    }

    /// Replaces the authenticators after token or CA files have changed.
    pub fn replace(&self, authenticators: AuthenticatorChain) {
        self.authenticators.store(Arc::new(authenticators));
    }

    /// Returns the caller of a request. Forwarded identities are accepted from facades, and removed from requests of other peers.
    pub(super) fn caller(&self, request: &mut http::Request<Body>) -> Result<Caller, NoCaller> {
        let authorizer = Arc::clone(&self.authorizer);
        if request.extensions().get::<LocalTrust>().is_some_and(|t| self.local.accepts(t)) {
            let forwarded = parse_forwarded(request.headers())?;
            let user =
                UserInfo::new("system:portico:facade:in-process", [FACADES_GROUP]).with_authenticated_group();
            return Ok(Caller::new_facade(IN_PROCESS.to_owned(), Arc::new(user), forwarded, authorizer));
        }
        refuse_web_content(request.headers())?;
        let (user, method) = self.authenticate(request)?;
        self.refuse_impersonation(request.headers())?;
        if method == AuthnMethod::InternalCertificate && user.in_group(FACADES_GROUP) {
            let forwarded = parse_forwarded(request.headers())?;
            return Ok(Caller::new_facade(user.name.clone(), user, forwarded, authorizer));
        }
        let mut metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
        ForwardedCaller::strip(&mut metadata);
        *request.headers_mut() = metadata.into_headers();
        Ok(Caller::new_native(user, authorizer))
    }

    /// Refuses impersonation. If the headers were ignored, the call would have the permissions of the caller itself.
    fn refuse_impersonation(&self, headers: &HeaderMap) -> Result<(), tonic::Status> {
        let authenticators = self.authenticators.load();
        let names_user = |name: &HeaderName| {
            consumes_header(name.as_str())
                || *name != AUTHORIZATION && authenticators.consumes_header(name.as_str())
        };
        match headers.keys().find(|name| names_user(name)) {
            Some(name) => Err(tonic::Status::invalid_argument(format!(
                "{name}: calls over gRPC cannot act as another user; use HTTP for impersonation and front proxies"
            ))),
            None => Ok(()),
        }
    }

    fn authenticate(&self, request: &http::Request<Body>) -> Result<(Arc<UserInfo>, AuthnMethod), NoCaller> {
        let peer = request.extensions().get::<ConnectionInfo>();
        let credentials = Credentials {
            authorization: request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes),
            websocket_protocols: None,
            peer: peer.and_then(|p| p.peer_chain.as_deref()),
            // Front proxies use HTTP and the facade; no header authenticates here.
            headers: &NoHeaders,
            path: None,
        };
        match self.authenticators.load().authenticate(&credentials).outcome {
            AuthnOutcome::Authenticated(user, method) => Ok((user, method)),
            AuthnOutcome::Anonymous(_) | AuthnOutcome::Unauthorized(_) => Err(unauthorized().into()),
            AuthnOutcome::NeedsReview(token) => Err(NoCaller::ReviewToken(token)),
        }
    }
}

/// Reason why a call has no caller.
pub(super) enum NoCaller {
    /// The token must be reviewed first.
    ReviewToken(String),
    /// The call is not authenticated.
    Status(Box<tonic::Status>),
}

impl From<tonic::Status> for NoCaller {
    fn from(status: tonic::Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// Returns 401, also for a token whose review failed.
pub(super) fn unauthorized() -> tonic::Status {
    to_rpc(&Status::unauthorized())
}

/// Refuses content types other than gRPC. A browser sends the client certificate of its user with requests of any page; without a
/// CORS preflight request, a page can only send other content types.
fn refuse_web_content(headers: &HeaderMap) -> Result<(), tonic::Status> {
    match is_grpc(headers) {
        true => Ok(()),
        false => Err(tonic::Status::invalid_argument("content-type: must be application/grpc")),
    }
}

/// True if the headers are those of a gRPC request.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

fn parse_forwarded(headers: &HeaderMap) -> Result<Option<ForwardedCaller>, tonic::Status> {
    // Only the two keys are copied into the map that the metadata requires.
    let mut forwarded = HeaderMap::new();
    for key in [portico_proto::identity::USER_KEY, portico_proto::identity::ATTRIBUTES_KEY] {
        if let Some(value) = headers.get(key) {
            forwarded.insert(key, value.clone());
        }
    }
    ForwardedCaller::read(&MetadataMap::from_headers(forwarded))
        .map_err(|e| tonic::Status::invalid_argument(e.to_string()))
}
