//! What is in force, in one piece: a request is authenticated, authorized, routed and answered by one of these, whatever
//! comes into force meanwhile.
//!
//! Its parts are persistent or shared, so that the next one costs what has changed.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_auth::authn::{Anonymous, Authority};
use portico_auth::authz::{AuthorizerUnion, Mode, Relations, of_modes};
use portico_auth::{AuthenticatorChain, Authorizer};
use portico_facade_catalog::ServedApis;
use portico_flow::{Rules, Waker};
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::peer_addresses::PeerAddresses;
use portico_machinery::rbac::Policy;

use crate::issuer::Issuer;
use crate::route_table::RouteTable;

/// See the module.
#[derive(Clone)]
pub struct InForce {
    /// What leads where.
    pub routes: Arc<RouteTable>,
    /// Discovery and OpenAPI.
    pub apis: Arc<ServedApis>,
    /// Who issues service accounts' tokens.
    pub issuer: Arc<Issuer>,
    /// Who knows callers: by files, and by the issuer's keys.
    pub authenticators: Arc<AuthenticatorChain>,
    /// The CA that signs certificate requests, as PEM and to check client certificates with.
    pub signing_ca: Option<(String, Authority)>,
    /// Who is let in without credentials, where the control service says it.
    pub anonymous: Option<Anonymous>,
    /// Other servers behind the same address.
    pub peers: Arc<PeerAddresses>,
    /// The release that is shown, once the control service has sent it.
    pub version: Option<EffectiveVersion>,
    /// What roles and bindings say.
    pub policy: Arc<Policy>,
    /// Who decides what callers may do: the modes that are on, with this policy.
    pub authorizer: Arc<dyn Authorizer>,
    /// Which priority levels requests belong to.
    pub flow: Arc<Rules<Waker>>,
}

/// What is in force now.
pub type Current = Arc<ArcSwap<InForce>>;

impl Default for InForce {
    /// Nothing is there, nobody is known and nobody may do anything.
    fn default() -> Self {
        Self {
            routes: Arc::default(),
            apis: Arc::default(),
            issuer: Arc::default(),
            authenticators: Arc::default(),
            signing_ca: None,
            anonymous: None,
            peers: Arc::default(),
            version: None,
            policy: Arc::default(),
            authorizer: Arc::new(AuthorizerUnion::default()),
            flow: Arc::default(),
        }
    }
}

impl InForce {
    /// Decides by this policy, as the modes say.
    pub fn set_policy(&mut self, policy: Policy, modes: &[Mode]) {
        self.policy = Arc::new(policy);
        self.set_modes(modes);
    }

    /// Decides as these modes say.
    pub fn set_modes(&mut self, modes: &[Mode]) {
        let rbac: Arc<dyn Authorizer> = self.policy.clone();
        self.authorizer = of_modes(modes, &rbac, &Relations::Remote);
    }

    /// Has the tokens of this issuer reviewed.
    pub fn set_issuer(&mut self, issuer: Issuer) {
        self.issuer = Arc::new(issuer);
        self.set_authenticators(AuthenticatorChain::clone(&self.authenticators));
    }

    /// Trusts client certificates of the CA that signs certificate requests (PEM), or of none.
    pub fn set_signing_ca(&mut self, pem: Option<&str>) {
        if self.signing_ca.as_ref().map(|(known, _)| known.as_str()) == pem {
            return;
        }
        self.signing_ca = pem.and_then(|pem| {
            let parsed = Authority::from_pem(pem.as_bytes());
            let parsed = parsed.inspect_err(|error| {
                tracing::warn!(%error, "cannot parse the CA of certificate requests, refusing its certificates");
            });
            Some((pem.to_owned(), parsed.ok()?))
        });
        self.set_authenticators(AuthenticatorChain::clone(&self.authenticators));
    }

    /// Lets these in without credentials, or those of the own settings.
    pub fn set_anonymous(&mut self, anonymous: Option<Anonymous>) {
        if self.anonymous != anonymous {
            self.anonymous = anonymous;
            self.set_authenticators(AuthenticatorChain::clone(&self.authenticators));
        }
    }

    /// Knows callers by these.
    pub fn set_authenticators(&mut self, authenticators: AuthenticatorChain) {
        let signing = self.signing_ca.as_ref().map(|(_, authority)| authority.clone());
        let authenticators = authenticators.with_trust(Arc::clone(self.issuer.trust()));
        let authenticators = authenticators.with_shared_anonymous(self.anonymous.clone());
        self.authenticators = Arc::new(authenticators.with_signing_authority(signing));
    }
}
