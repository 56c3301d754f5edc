//! The caller of one gRPC call: who, through whom, and whether they may.

use std::sync::Arc;

use portico_auditor::Audited;
use portico_auth::{Authorizer, forbidden};
use portico_machinery::{Attributes, RequestInfo, Status, UserInfo};
use portico_proto::identity::Forwarded;
use portico_proto::rpc_status::to_rpc;

use super::recording::Recording;

const FACADES_ONLY: &str = "only clients with a facade certificate may call this method";

/// Who is at the other end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A facade of this name; its verdict on a forwarded caller is final for what it could know.
    Facade(String),
    /// Anybody else: speaks for itself.
    Native,
}

/// The caller. Services find it in the request's extensions.
#[derive(Clone)]
pub struct Caller {
    user: Arc<UserInfo>,
    peer: Peer,
    forwarded: bool,
    /// True if a facade asks on its own account, not for a client.
    own_account: bool,
    authorizer: Arc<dyn Authorizer>,
    /// Of native callers, where calls are recorded.
    recording: Option<Arc<Recording>>,
}

impl Caller {
    /// Somebody who speaks for themselves.
    pub(super) fn native(user: Arc<UserInfo>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { user, peer: Peer::Native, forwarded: false, own_account: false, authorizer, recording: None }
    }

    /// A facade, speaking for itself or for somebody.
    pub(super) fn facade(
        name: String,
        user: Arc<UserInfo>,
        forwarded: Option<Forwarded>,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        let (peer, recording) = (Peer::Facade(name), None);
        match forwarded {
            None => Self { user, peer, forwarded: false, own_account: false, authorizer, recording },
            Some(Forwarded { user, own_account, .. }) => {
                Self { user, peer, forwarded: true, own_account, authorizer, recording }
            }
        }
    }

    /// The user to act as.
    #[must_use]
    pub fn user(&self) -> &UserInfo {
        &self.user
    }

    pub(super) fn shared_user(&self) -> Arc<UserInfo> {
        Arc::clone(&self.user)
    }

    pub(super) fn record_in(&mut self, recording: Arc<Recording>) {
        self.recording = Some(recording);
    }

    /// Begins the event of a call that asks for this, where calls are recorded: what is asked for stands in the message.
    ///
    /// # Errors
    /// 500, when the event had to be stored and was not.
    pub async fn begin(&self, info: &RequestInfo) -> Result<(), Box<Status>> {
        match &self.recording {
            Some(recording) => recording.begin(info).await,
            None => Ok(()),
        }
    }

    /// The event of the call; nothing of calls that are not recorded.
    #[must_use]
    pub fn audited(&self) -> Option<&Arc<Audited>> {
        self.recording.as_ref()?.audited()
    }

    /// Whether a facade forwards an HTTP caller: then a Status travels whole in the answer's body.
    #[must_use]
    pub fn is_forwarded(&self) -> bool {
        self.forwarded
    }

    /// True if a facade asks on its own account. Only a facade's certificate or the in-process trust can make it so: the
    /// metadata that says it is removed from the calls of all other peers, and facades never set it for a client.
    #[must_use]
    pub fn asks_on_own_account(&self) -> bool {
        self.own_account
    }

    /// The facade's name, if the peer is one.
    #[must_use]
    pub fn facade_name(&self) -> Option<&str> {
        match &self.peer {
            Peer::Facade(name) => Some(name),
            Peer::Native => None,
        }
    }

    /// Asks whether the caller may do this; what a facade forwards has been decided there.
    ///
    /// # Errors
    /// The 403 Status.
    pub async fn authorize(&self, request: RequestInfo) -> Result<(), Box<Status>> {
        if self.forwarded { Ok(()) } else { self.ask(&Attributes::new(self.user.clone(), request)).await }
    }

    /// The same of what only the message names: a facade that forwards it has not read that, and its verdict says nothing of it.
    ///
    /// # Errors
    /// The 403 Status.
    pub async fn authorize_message(&self, request: RequestInfo) -> Result<(), Box<Status>> {
        self.ask(&Attributes::new(self.user.clone(), request)).await
    }

    /// True if the caller may do this as well. Does not decide on the request, so audit events do not show the answer.
    pub(crate) async fn may(&self, request: RequestInfo) -> bool {
        self.authorizer.decide(&Attributes::new(self.user.clone(), request)).await.allowed()
    }

    async fn ask(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        let decision = self.authorizer.decide(attributes).await;
        if let Some(audited) = self.audited() {
            audited.set_decision(Some((decision.allowed(), &decision.reason)));
        }
        if decision.allowed() || decision.error.is_empty() {
            return decision.permit(attributes);
        }
        Err(Box::new(Status::internal(decision.error)))
    }

    pub(super) async fn authorize_path(&self, path: &str) -> Result<(), tonic::Status> {
        // Forwarded callers have no business here: a facade calls objects for them and nothing else.
        self.ask(&Attributes::path(self.user.clone(), "post", path)).await.map_err(|s| to_rpc(&s))
    }

    pub(super) fn require_facade(&self, path: &str) -> Result<(), tonic::Status> {
        if matches!(self.peer, Peer::Facade(_)) && !self.forwarded {
            return Ok(());
        }
        if let Some(audited) = self.audited() {
            audited.set_decision(Some((false, FACADES_ONLY)));
        }
        let attributes = Attributes::path(self.user.clone(), "post", &format!("/grpc{path}"));
        Err(to_rpc(&forbidden(&attributes, FACADES_ONLY)))
    }
}
