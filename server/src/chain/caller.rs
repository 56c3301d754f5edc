//! Caller of a gRPC call: the user, the peer, and the authorization of both.

use std::sync::Arc;

use portico_auditor::AuditedRequest;
use portico_auth::{Authorizer, forbidden};
use portico_machinery::{Attributes, RequestInfo, Status, UserInfo};
use portico_proto::identity::ForwardedCaller;
use portico_proto::rpc_status::to_rpc;

use super::recording::Recording;

const FACADES_ONLY: &str = "only clients with a facade certificate may call this method";

/// Peer of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Facade with this name. Its decisions on forwarded callers are final, as far as the facade knows the request.
    Facade(String),
    /// Any other client, which acts for itself.
    Native,
}

/// Caller of a gRPC call. Services find it in the extensions of the request.
#[derive(Clone)]
pub struct Caller {
    user: Arc<UserInfo>,
    peer: Peer,
    forwarded: bool,
    /// True if a facade acts on its own account, not for a client.
    own_account: bool,
    authorizer: Arc<dyn Authorizer>,
    /// Audit record of the call; `None` if it is not recorded here.
    recording: Option<Arc<Recording>>,
}

impl Caller {
    /// Creates a caller that acts for itself.
    pub(super) fn new_native(user: Arc<UserInfo>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { user, peer: Peer::Native, forwarded: false, own_account: false, authorizer, recording: None }
    }

    /// Creates a facade, which acts for itself or for a forwarded caller.
    pub(super) fn new_facade(
        name: String,
        user: Arc<UserInfo>,
        forwarded: Option<ForwardedCaller>,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        let (peer, recording) = (Peer::Facade(name), None);
        match forwarded {
            None => Self { user, peer, forwarded: false, own_account: false, authorizer, recording },
            Some(ForwardedCaller { user, own_account, .. }) => {
                Self { user, peer, forwarded: true, own_account, authorizer, recording }
            }
        }
    }

    /// Returns the user on whose behalf the call acts.
    #[must_use]
    pub fn user(&self) -> &UserInfo {
        &self.user
    }

    pub(super) fn shared_user(&self) -> Arc<UserInfo> {
        Arc::clone(&self.user)
    }

    pub(super) fn set_recording(&mut self, recording: Arc<Recording>) {
        self.recording = Some(recording);
    }

    /// Begins the audit event of a call, if calls are recorded. Services call this when the request is in the message.
    ///
    /// # Errors
    /// 500 if the event could not be stored and the policy requires it.
    pub async fn begin_audit(&self, info: &RequestInfo) -> Result<(), Box<Status>> {
        match &self.recording {
            Some(recording) => recording.begin(info).await,
            None => Ok(()),
        }
    }

    /// Returns the audit event of the call; `None` if it is not recorded.
    #[must_use]
    pub fn audited_request(&self) -> Option<&Arc<AuditedRequest>> {
        self.recording.as_ref()?.audited_request()
    }

    /// True if a facade forwards an HTTP caller. The complete Status is then sent in the body of the response.
    #[must_use]
    pub fn is_forwarded(&self) -> bool {
        self.forwarded
    }

    /// True if a facade acts on its own account. Only a facade certificate or in-process trust allows this: the metadata is
    /// removed from calls of all other peers, and facades never set it for a client.
    #[must_use]
    pub fn is_on_own_account(&self) -> bool {
        self.own_account
    }

    /// Returns the name of the facade; `None` if the peer is not a facade.
    #[must_use]
    pub fn facade_name(&self) -> Option<&str> {
        match &self.peer {
            Peer::Facade(name) => Some(name),
            Peer::Native => None,
        }
    }

    /// Authorizes a request of the caller. Requests that a facade forwards were authorized there.
    ///
    /// # Errors
    /// The Status with code 403.
    pub async fn authorize(&self, request: RequestInfo) -> Result<(), Box<Status>> {
        if self.forwarded { Ok(()) } else { self.check(&Attributes::new(self.user.clone(), request)).await }
    }

    /// Authorizes a request that only the message describes, even if a facade forwards it, because facades do not
    /// decode the message.
    ///
    /// # Errors
    /// The Status with code 403.
    pub async fn authorize_message(&self, request: RequestInfo) -> Result<(), Box<Status>> {
        self.check(&Attributes::new(self.user.clone(), request)).await
    }

    /// True if the caller is allowed to make another request. The result is not part of audit events.
    pub(crate) async fn is_allowed(&self, request: RequestInfo) -> bool {
        self.authorizer.decide(&Attributes::new(self.user.clone(), request)).await.is_allowed()
    }

    async fn check(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        let decision = self.authorizer.decide(attributes).await;
        if let Some(audited_request) = self.audited_request() {
            audited_request.set_decision(Some((decision.is_allowed(), &decision.reason)));
        }
        if decision.is_allowed() || decision.error.is_empty() {
            return decision.to_result(attributes);
        }
        Err(Box::new(Status::internal(decision.error)))
    }

    pub(super) async fn authorize_path(&self, path: &str) -> Result<(), tonic::Status> {
        // Forwarded callers are refused, because facades forward only calls for objects.
        self.check(&Attributes::path(self.user.clone(), "post", path)).await.map_err(|s| to_rpc(&s))
    }

    pub(super) fn require_facade(&self, path: &str) -> Result<(), tonic::Status> {
        if matches!(self.peer, Peer::Facade(_)) && !self.forwarded {
            return Ok(());
        }
        if let Some(audited_request) = self.audited_request() {
            audited_request.set_decision(Some((false, FACADES_ONLY)));
        }
        let attributes = Attributes::path(self.user.clone(), "post", &format!("/grpc{path}"));
        Err(to_rpc(&forbidden(&attributes, FACADES_ONLY)))
    }
}
