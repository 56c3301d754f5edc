//! What is in force, in one piece: a request is authenticated, authorized, routed and answered by one of these, whatever
//! comes into force meanwhile.
//!
//! Its parts are persistent or shared, so that the next one costs what has changed.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_auth::authz::{AuthorizerUnion, Mode, Relations, of_modes};
use portico_auth::{AuthenticatorChain, Authorizer};
use portico_facade_catalog::ServedApis;
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
    /// What roles and bindings say.
    pub policy: Arc<Policy>,
    /// Who decides what callers may do: the modes that are on, with this policy.
    pub authorizer: Arc<dyn Authorizer>,
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
            policy: Arc::default(),
            authorizer: Arc::new(AuthorizerUnion::default()),
        }
    }
}

impl InForce {
    /// Decides by this policy, as the modes say.
    pub fn set_policy(&mut self, policy: Policy, modes: &[Mode]) {
        self.policy = Arc::new(policy);
        let rbac: Arc<dyn Authorizer> = self.policy.clone();
        self.authorizer = of_modes(modes, &rbac, &Relations::Elsewhere);
    }

    /// Has the tokens of this issuer reviewed.
    pub fn set_issuer(&mut self, issuer: Issuer) {
        self.issuer = Arc::new(issuer);
        self.set_authenticators(AuthenticatorChain::clone(&self.authenticators));
    }

    /// Knows callers by these.
    pub fn set_authenticators(&mut self, authenticators: AuthenticatorChain) {
        self.authenticators = Arc::new(authenticators.with_trust(Arc::clone(self.issuer.trust())));
    }
}
