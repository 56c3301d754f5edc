//! Who calls: certificate, bearer token, or the in-process facade; and whom a facade speaks for.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use portico_auth::authn::{FACADES, Reviewer};
use portico_auth::forwarded::{LocalTrust, LocalTrustVerifier};
use portico_auth::headers::NoHeaders;
use portico_auth::impersonate::consumes_header;
use portico_auth::{AuthenticatorChain, Authorizer, Credentials, Method, Outcome};
use portico_machinery::{Status, UserInfo};
use portico_proto::identity::Forwarded;
use portico_proto::rpc_status::to_rpc;
use tonic::body::Body;
use tonic::metadata::MetadataMap;

use super::caller::Caller;
use crate::listen::Connected;

/// The name under which the in-process facade is known.
const IN_PROCESS: &str = "in-process";

/// What the chain trusts: authenticators (swapped on reload), the authorizer, and the one in-process trust.
pub struct Identities {
    authenticators: ArcSwap<AuthenticatorChain>,
    reviewer: OnceLock<Arc<dyn Reviewer>>,
    authorizer: Arc<dyn Authorizer>,
    local: LocalTrustVerifier,
}

impl Identities {
    /// These authenticators, this authorizer, and this in-process facade.
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

    /// Asks this one what tokens stand for; whoever comes second is not asked.
    pub fn review_with(&self, reviewer: Arc<dyn Reviewer>) {
        let _ = self.reviewer.set(reviewer);
    }

    /// Finds out whose token this is, which this client presents, so that the next look knows.
    pub(super) async fn reviewed(&self, token: &str, client: IpAddr) -> Result<(), tonic::Status> {
        let authenticators = self.authenticators.load_full();
        let Some(reviewer) = self.reviewer.get() else { return Ok(()) };
        let reviewed = authenticators.reviewed(token, client, &**reviewer).await;
        reviewed.map_err(|error| to_rpc(&Status::too_many_requests(error.to_string(), 1)))
    }

    /// Replaces the authenticators: token or CA files changed.
    pub fn replace(&self, authenticators: AuthenticatorChain) {
        self.authenticators.store(Arc::new(authenticators));
    }

    /// The caller of a request. Forwarded identity is trusted from a facade, and taken out for anybody else.
    pub(super) fn caller(&self, request: &mut http::Request<Body>) -> Result<Caller, Refused> {
        let authorizer = Arc::clone(&self.authorizer);
        if request.extensions().get::<LocalTrust>().is_some_and(|t| self.local.accepts(t)) {
            let forwarded = forwarded(request.headers())?;
            let user = UserInfo::new("system:portico:facade:in-process", [FACADES]).authenticated();
            return Ok(Caller::facade(IN_PROCESS.to_owned(), Arc::new(user), forwarded, authorizer));
        }
        refuse_web_content(request.headers())?;
        let (user, method) = self.authenticate(request)?;
        self.refuse_other_users(request.headers())?;
        if method == Method::InternalCertificate && user.in_group(FACADES) {
            let forwarded = forwarded(request.headers())?;
            return Ok(Caller::facade(user.name.clone(), user, forwarded, authorizer));
        }
        let mut metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
        Forwarded::strip(&mut metadata);
        *request.headers_mut() = metadata.into_headers();
        Ok(Caller::native(user, authorizer))
    }

    /// Refuses impersonation. Ignoring the fields would let the call run with the caller's own rights.
    fn refuse_other_users(&self, headers: &HeaderMap) -> Result<(), tonic::Status> {
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

    fn authenticate(&self, request: &http::Request<Body>) -> Result<(Arc<UserInfo>, Method), Refused> {
        let peer = request.extensions().get::<Connected>();
        let credentials = Credentials {
            authorization: request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes),
            websocket_protocols: None,
            peer: peer.and_then(|p| p.chain.as_deref()),
            // Front proxies speak HTTP to the facade; no header authenticates here.
            headers: &NoHeaders,
            path: None,
        };
        match self.authenticators.load().authenticate(&credentials).outcome {
            Outcome::Authenticated(user, method) => Ok((user, method)),
            Outcome::Anonymous(_) | Outcome::Unauthorized(_) => Err(unauthorized().into()),
            Outcome::Ask(token) => Err(Refused::Ask(token)),
        }
    }
}

/// Why there is no caller.
pub(super) enum Refused {
    /// This token must be reviewed first.
    Ask(String),
    /// There is none.
    Status(Box<tonic::Status>),
}

impl From<tonic::Status> for Refused {
    fn from(status: tonic::Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// 401, for a token that nobody could review, too.
pub(super) fn unauthorized() -> tonic::Status {
    to_rpc(&Status::unauthorized())
}

/// A browser sends its user's client certificate with requests of any page. Without asking this server first (CORS), a page
/// can only send other content types than gRPC's.
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

fn forwarded(headers: &HeaderMap) -> Result<Option<Forwarded>, tonic::Status> {
    // Metadata wants its own map; only the two keys are copied.
    let mut own = HeaderMap::new();
    for key in [portico_proto::identity::USER_KEY, portico_proto::identity::ATTRIBUTES_KEY] {
        if let Some(value) = headers.get(key) {
            own.insert(key, value.clone());
        }
    }
    Forwarded::read(&MetadataMap::from_headers(own))
        .map_err(|e| tonic::Status::invalid_argument(e.to_string()))
}
