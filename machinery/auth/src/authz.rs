//! Authorization: the authorizer trait, decisions, and the 403 response of a denied request.
//!
//! Upstream rules: generic API server 11.3 and 10. Does not depend on the origin of the attributes.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portico_machinery::rbac::{Rule, cluster_admin_rules};
use portico_machinery::{Attributes, GroupResource, Status, UserInfo, aggregate};

pub mod abac;
mod builtin;
pub mod conditions;
mod deferred_authorizer;
mod mode;
pub mod node;
mod rbac;
pub mod review;

pub use builtin::{FacadesAuthorizer, MastersAuthorizer};
pub use deferred_authorizer::DeferredAuthorizer;
pub use mode::{AuthorizationMode, authorizer_for_modes};
pub use node::{NodeAuthorizer, NodeRelations};
pub use rbac::RbacAuthorizer;

/// Cached responses of an authorization or token webhook, and decisions that a facade caches while the control
/// service is away.
///
/// Equal to kube-apiserver's number.
///
/// Limit (Authentication and authorization): the least recently used one is removed.
pub const MAX_CACHED_ANSWERS: usize = 8192;

/// Verdict of an authorizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is allowed.
    Allow,
    /// The request is denied, and later authorizers are not called.
    Deny,
    /// The next authorizer decides; at the end of the chain the request is denied.
    NoOpinion,
    /// The decision needs objects or webhooks of the control service. Until a remote authorizer has decided, the
    /// request is denied.
    Delegate,
}

/// Verdict with reason and error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Verdict of the authorizer.
    pub verdict: Verdict,
    /// Reason, often empty. Appended to the message of the 403, and written as audit annotation `authorization.k8s.io/reason`.
    pub reason: Cow<'static, str>,
    /// Error that kept an authorizer from a verdict; empty if there was none. If no authorizer allows the request, it is an
    /// internal error.
    pub error: Cow<'static, str>,
}

impl Decision {
    fn new(verdict: Verdict, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict, reason: reason.into(), error: Cow::Borrowed("") }
    }

    /// Returns a decision that allows the request, with a reason.
    pub fn allow(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Verdict::Allow, reason)
    }

    /// Returns a decision that denies the request, with a reason.
    pub fn deny(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Verdict::Deny, reason)
    }

    /// Returns a decision without an opinion, with a reason.
    pub fn no_opinion(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Verdict::NoOpinion, reason)
    }

    /// Returns a decision that delegates to a remote authorizer.
    #[must_use]
    pub fn delegate() -> Self {
        Self::new(Verdict::Delegate, "")
    }

    /// Sets the error.
    #[must_use]
    pub fn with_error(self, error: impl Into<Cow<'static, str>>) -> Self {
        Self { error: error.into(), ..self }
    }

    /// True if the request is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// Converts the decision to a result: the error is the 403 response of a denied request.
    ///
    /// # Errors
    /// Returns the `Forbidden` Status of [`forbidden`].
    pub fn to_result(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        if self.is_allowed() { Ok(()) } else { Err(Box::new(forbidden(attributes, &self.reason))) }
    }
}

/// Permissions of a user, as far as they can be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserRules {
    /// Rules in the order of the authorizers.
    pub rules: Vec<Rule>,
    /// Errors of collecting the rules.
    pub errors: Vec<String>,
    /// True if an authorizer has permissions that it cannot list.
    pub incomplete: bool,
}

/// Future decision.
pub type DecisionFuture<'a> = Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;

/// Authorizer, which decides in memory or by calling a remote authorizer.
pub trait Authorizer: Send + Sync {
    /// Decides without waiting. An authorizer that would have to wait returns [`Verdict::Delegate`].
    fn authorize(&self, attributes: &Attributes) -> Decision;

    /// Decides like [`Self::authorize`], and calls remote authorizers if necessary.
    fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
        Box::pin(std::future::ready(self.authorize(attributes)))
    }

    /// Returns the permissions of the user in a namespace; an empty namespace means only cluster scope. Empty by default.
    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> UserRules {
        UserRules::default()
    }

    /// Authorizes and converts the decision to a result: the error is the 403 response of a denied request.
    ///
    /// # Errors
    /// Returns the `Forbidden` Status of [`forbidden`].
    fn check(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        self.authorize(attributes).to_result(attributes)
    }
}

impl<A: Authorizer + ?Sized> Authorizer for Arc<A> {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        (**self).authorize(attributes)
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
        (**self).decide(attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        (**self).rules_for(user, namespace)
    }
}

/// Future decision of a remote authorizer; `None` if it could not be reached.
pub type RemoteDecisionFuture<'a> = Pin<Box<dyn Future<Output = Option<Decision>> + Send + 'a>>;

/// Remote authorizer, with access to the objects and webhooks that a delegated decision needs ([`Verdict::Delegate`]).
pub trait RemoteAuthorizer: Send + Sync {
    /// Decides about the attributes.
    fn decide<'a>(&'a self, attributes: &'a Attributes) -> RemoteDecisionFuture<'a>;
}

/// Authorizer that passes delegated decisions to a remote authorizer.
pub struct DelegatingAuthorizer {
    local: Arc<dyn Authorizer>,
    remote: Arc<dyn RemoteAuthorizer>,
}

impl DelegatingAuthorizer {
    /// Combines a local authorizer with a remote one for delegated decisions.
    #[must_use]
    pub fn new(local: Arc<dyn Authorizer>, remote: Arc<dyn RemoteAuthorizer>) -> Self {
        Self { local, remote }
    }
}

impl Authorizer for DelegatingAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        self.local.authorize(attributes)
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
        Box::pin(async move {
            let decision = self.local.authorize(attributes);
            if decision.verdict != Verdict::Delegate {
                return decision;
            }
            let decided = self.remote.decide(attributes).await;
            decided.unwrap_or_else(|| Decision::no_opinion("no authorizer could be reached"))
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        self.local.rules_for(user, namespace)
    }
}

/// Authorizer that allows everything (`--authorization-mode AlwaysAllow`).
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _: &Attributes) -> Decision {
        Decision::allow("")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> UserRules {
        UserRules { rules: cluster_admin_rules().to_vec(), ..UserRules::default() }
    }
}

/// Authorizer that allows nothing (`--authorization-mode AlwaysDeny`).
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize(&self, _: &Attributes) -> Decision {
        Decision::no_opinion("Everything is forbidden.")
    }
}

/// Authorizers in order: the first one that allows, denies or delegates decides. The reasons and errors of those without an
/// opinion are joined.
#[derive(Clone, Default)]
pub struct AuthorizerUnion(Vec<Arc<dyn Authorizer>>);

impl AuthorizerUnion {
    /// Combines these authorizers in this order.
    #[must_use]
    pub fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> Self {
        Self(authorizers)
    }
}

impl Authorizer for AuthorizerUnion {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let mut undecided = NoOpinionReasons::default();
        for authorizer in &self.0 {
            let decision = authorizer.authorize(attributes);
            if decision.verdict != Verdict::NoOpinion {
                return decision;
            }
            undecided.add(decision);
        }
        undecided.into_decision()
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
        Box::pin(async move {
            let mut undecided = NoOpinionReasons::default();
            for authorizer in &self.0 {
                let decision = authorizer.decide(attributes).await;
                if decision.verdict != Verdict::NoOpinion {
                    return decision;
                }
                undecided.add(decision);
            }
            undecided.into_decision()
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let mut all = UserRules::default();
        for authorizer in &self.0 {
            let UserRules { rules, errors, incomplete } = authorizer.rules_for(user, namespace);
            all.rules.extend(rules);
            all.errors.extend(errors);
            all.incomplete |= incomplete;
        }
        all
    }
}

/// Reasons and errors of authorizers without an opinion.
#[derive(Default)]
struct NoOpinionReasons {
    reasons: Vec<Cow<'static, str>>,
    errors: Vec<Cow<'static, str>>,
}

impl NoOpinionReasons {
    fn add(&mut self, decision: Decision) {
        let Decision { reason, error, .. } = decision;
        self.reasons.extend(Some(reason).filter(|reason| !reason.is_empty()));
        self.errors.extend(Some(error).filter(|error| !error.is_empty()));
    }

    fn into_decision(self) -> Decision {
        let decision = Decision::no_opinion(self.reasons.join("\n"));
        if self.errors.is_empty() { decision } else { decision.with_error(aggregate(&self.errors)) }
    }
}

/// Returns the 403 Status of a denied request, with upstream's message.
#[must_use]
pub fn forbidden(attributes: &Attributes, reason: &str) -> Status {
    let mut message = attributes.describe();
    if !reason.is_empty() {
        message.push_str(": ");
        message.push_str(reason);
    }
    let r = &attributes.request;
    if r.is_resource_request {
        Status::forbidden(&GroupResource::new(&r.api_group, &r.resource), &r.name, &message)
    } else {
        Status::forbidden(&GroupResource::new("", ""), "", &message)
    }
}
