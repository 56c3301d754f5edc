//! The active configuration, as one value: a request is authenticated, authorized, routed and served by the version that was
//! active when it arrived, also if the configuration changes in the meantime.
//!
//! Parts are persistent or shared, so that the cost of a new version depends on the size of the change.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_auth::authn::{AnonymousAccess, TrustedAuthority};
use portico_auth::authz::{AuthorizationMode, AuthorizerUnion, NodeRelations, authorizer_for_modes};
use portico_auth::{AuthenticatorChain, Authorizer};
use portico_facade_catalog::ServedApis;
use portico_flow::{FlowRules, SeatWaker};
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::peer_addresses::PeerAddresses;
use portico_machinery::rbac::Policy;

use crate::issuer::Issuer;
use crate::route_table::RouteTable;

/// Active configuration.
#[derive(Clone)]
pub struct ActiveConfig {
    /// Destinations of requests.
    pub routes: Arc<RouteTable>,
    /// Served APIs: discovery and OpenAPI.
    pub apis: Arc<ServedApis>,
    /// Issuer of service account tokens.
    pub issuer: Arc<Issuer>,
    /// Authenticators: from files, and with the issuer's keys.
    pub authenticators: Arc<AuthenticatorChain>,
    /// CA that signs CertificateSigningRequests, as PEM and as an authority to verify client certificates.
    pub signing_ca: Option<(String, TrustedAuthority)>,
    /// Rules for anonymous requests, if the control service sends any.
    pub anonymous: Option<AnonymousAccess>,
    /// Other servers behind the same address.
    pub peers: Arc<PeerAddresses>,
    /// Emulated version and minimum compatibility version, once the control service has sent them.
    pub version: Option<EffectiveVersion>,
    /// Roles and bindings.
    pub policy: Arc<Policy>,
    /// Authorizer of the modes that are enabled, with this policy.
    pub authorizer: Arc<dyn Authorizer>,
    /// Rules that assign requests to priority levels.
    pub flow: Arc<FlowRules<SeatWaker>>,
}

/// Shared cell with the active configuration.
pub type ActiveConfigCell = Arc<ArcSwap<ActiveConfig>>;

impl Default for ActiveConfig {
    /// Empty: no routes, no authenticators, and an authorizer that allows nothing.
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

impl ActiveConfig {
    /// Replaces the policy, and authorizes with it by the modes.
    pub fn set_policy(&mut self, policy: Policy, modes: &[AuthorizationMode]) {
        self.policy = Arc::new(policy);
        self.set_modes(modes);
    }

    /// Replaces the authorization modes.
    pub fn set_modes(&mut self, modes: &[AuthorizationMode]) {
        let rbac: Arc<dyn Authorizer> = self.policy.clone();
        self.authorizer = authorizer_for_modes(modes, &rbac, &NodeRelations::Remote);
    }

    /// Replaces the issuer, and the trust in its tokens.
    pub fn set_issuer(&mut self, issuer: Issuer) {
        self.issuer = Arc::new(issuer);
        self.set_authenticators(AuthenticatorChain::clone(&self.authenticators));
    }

    /// Trusts client certificates of the CA that signs CertificateSigningRequests (PEM); `None` trusts none.
    pub fn set_signing_ca(&mut self, pem: Option<&str>) {
        if self.signing_ca.as_ref().map(|(known, _)| known.as_str()) == pem {
            return;
        }
        self.signing_ca = pem.and_then(|pem| {
            let parsed = TrustedAuthority::from_pem(pem.as_bytes());
            let parsed = parsed.inspect_err(|error| {
                tracing::warn!(%error, "cannot parse the CA of certificate requests, refusing its certificates");
            });
            Some((pem.to_owned(), parsed.ok()?))
        });
        self.set_authenticators(AuthenticatorChain::clone(&self.authenticators));
    }

    /// Replaces the rules for anonymous requests; `None` restores those of the facade's settings.
    pub fn set_anonymous(&mut self, anonymous: Option<AnonymousAccess>) {
        if self.anonymous != anonymous {
            self.anonymous = anonymous;
            self.set_authenticators(AuthenticatorChain::clone(&self.authenticators));
        }
    }

    /// Replaces the authenticators from files.
    pub fn set_authenticators(&mut self, authenticators: AuthenticatorChain) {
        let signing = self.signing_ca.as_ref().map(|(_, authority)| authority.clone());
        let authenticators = authenticators.with_token_trust(Arc::clone(self.issuer.trust()));
        let authenticators = authenticators.with_shared_anonymous(self.anonymous.clone());
        self.authenticators = Arc::new(authenticators.with_signing_authority(signing));
    }
}
