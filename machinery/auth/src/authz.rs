//! What a caller may do: the trait, its answers, and the 403 that follows from a refusal.
//!
//! Upstream rules: generic API server 11.3 and 10. Must not know where the question came from.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portico_machinery::rbac::{Rule, cluster_admin};
use portico_machinery::{Attributes, GroupResource, Status, UserInfo, aggregate};

pub mod abac;
mod builtin;
pub mod conditions;
mod mode;
pub mod node;
mod questions;
mod rbac;
pub mod review;

pub use builtin::{Facades, Masters};
pub use mode::{Mode, of_modes};
pub use node::{Node, Relations};
pub use questions::Questions;
pub use rbac::Rbac;

/// Cached responses of an authorization or token webhook, and decisions that a facade keeps for when the control service is
/// away.
///
/// The number of kube-apiserver.
///
/// Limit (Authentication and authorization): the least recently used one is removed.
pub const MAX_ANSWERS: usize = 8192;

/// An authorizer's opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allow,
    /// No, and nobody else is asked.
    Deny,
    /// Ask the next one; at the end of the chain this is a no.
    NoOpinion,
    /// It cannot be decided here: whoever keeps the objects has to be asked, and until then this is a no.
    Ask,
}

/// An opinion and its grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The opinion.
    pub verdict: Verdict,
    /// Why; appended to the 403's message and written as audit annotation `authorization.k8s.io/reason`. Often empty.
    pub reason: Cow<'static, str>,
    /// What kept somebody from an opinion; empty when all went well. Where nobody allows the request it is an internal error.
    pub error: Cow<'static, str>,
}

impl Decision {
    fn new(verdict: Verdict, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict, reason: reason.into(), error: Cow::Borrowed("") }
    }

    /// Yes, for this reason.
    pub fn allow(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Verdict::Allow, reason)
    }

    /// No, for this reason.
    pub fn deny(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Verdict::Deny, reason)
    }

    /// No opinion, for this reason.
    pub fn no_opinion(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Verdict::NoOpinion, reason)
    }

    /// Ask whoever keeps the objects.
    #[must_use]
    pub fn ask() -> Self {
        Self::new(Verdict::Ask, "")
    }

    /// The same, where this went wrong.
    #[must_use]
    pub fn with_error(self, error: impl Into<Cow<'static, str>>) -> Self {
        Self { error: error.into(), ..self }
    }

    /// Whether the caller may.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// The decision as a result: the 403 to answer with when the caller may not.
    ///
    /// # Errors
    /// The `Forbidden` Status of [`forbidden`].
    pub fn permit(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        if self.allowed() { Ok(()) } else { Err(Box::new(forbidden(attributes, &self.reason))) }
    }
}

/// What a user may do, as far as it can be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules, in the order of the authorizers.
    pub rules: Vec<Rule>,
    /// What went wrong while they were gathered.
    pub errors: Vec<String>,
    /// Whether some authorizer allows what it cannot list.
    pub incomplete: bool,
}

/// A decision on its way.
pub type Authorizing<'a> = Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;

/// Decides from memory, or by asking somebody.
pub trait Authorizer: Send + Sync {
    /// May this user do this? Never waits: who has to ask somebody says so ([`Verdict::Ask`]).
    fn authorize(&self, attributes: &Attributes) -> Decision;

    /// The same, asking whoever has to be asked.
    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Authorizing<'a> {
        Box::pin(std::future::ready(self.authorize(attributes)))
    }

    /// What this user may do in a namespace (empty: at cluster scope alone). By default there is nothing to list.
    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> Rules {
        Rules::default()
    }

    /// The same as a result: the 403 to answer with when the caller may not.
    ///
    /// # Errors
    /// The `Forbidden` Status of [`forbidden`].
    fn check(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        self.authorize(attributes).permit(attributes)
    }
}

impl<A: Authorizer + ?Sized> Authorizer for Arc<A> {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        (**self).authorize(attributes)
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Authorizing<'a> {
        (**self).decide(attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        (**self).rules_for(user, namespace)
    }
}

/// A decision on its way; nothing when nobody could be asked.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Option<Decision>> + Send + 'a>>;

/// Whoever keeps the objects, for what cannot be decided without them ([`Verdict::Ask`]).
pub trait Decider: Send + Sync {
    /// May this user do this?
    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Deciding<'a>;
}

/// An authorizer, and a decider for what it cannot decide.
pub struct Delegating {
    local: Arc<dyn Authorizer>,
    decider: Arc<dyn Decider>,
}

impl Delegating {
    /// This authorizer, and this decider for what it cannot decide.
    #[must_use]
    pub fn new(local: Arc<dyn Authorizer>, decider: Arc<dyn Decider>) -> Self {
        Self { local, decider }
    }
}

impl Authorizer for Delegating {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        self.local.authorize(attributes)
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Authorizing<'a> {
        Box::pin(async move {
            let decision = self.local.authorize(attributes);
            if decision.verdict != Verdict::Ask {
                return decision;
            }
            let decided = self.decider.decide(attributes).await;
            decided.unwrap_or_else(|| Decision::no_opinion("no authorizer could be reached"))
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        self.local.rules_for(user, namespace)
    }
}

/// Lets everybody do everything (`--authorization-mode AlwaysAllow`).
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _: &Attributes) -> Decision {
        Decision::allow("")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules { rules: cluster_admin().to_vec(), ..Rules::default() }
    }
}

/// Lets nobody do anything (`--authorization-mode AlwaysDeny`).
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize(&self, _: &Attributes) -> Decision {
        Decision::no_opinion("Everything is forbidden.")
    }
}

/// Authorizers in order: the first that has an opinion or must ask for one wins, the reasons and errors of those without opinion
/// are joined.
#[derive(Clone, Default)]
pub struct AuthorizerUnion(Vec<Arc<dyn Authorizer>>);

impl AuthorizerUnion {
    /// These, in this order.
    #[must_use]
    pub fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> Self {
        Self(authorizers)
    }
}

impl Authorizer for AuthorizerUnion {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let mut undecided = Undecided::default();
        for authorizer in &self.0 {
            let decision = authorizer.authorize(attributes);
            if decision.verdict != Verdict::NoOpinion {
                return decision;
            }
            undecided.add(decision);
        }
        undecided.end()
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Authorizing<'a> {
        Box::pin(async move {
            let mut undecided = Undecided::default();
            for authorizer in &self.0 {
                let decision = authorizer.decide(attributes).await;
                if decision.verdict != Verdict::NoOpinion {
                    return decision;
                }
                undecided.add(decision);
            }
            undecided.end()
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for authorizer in &self.0 {
            let Rules { rules, errors, incomplete } = authorizer.rules_for(user, namespace);
            all.rules.extend(rules);
            all.errors.extend(errors);
            all.incomplete |= incomplete;
        }
        all
    }
}

/// What authorizers without an opinion say.
#[derive(Default)]
struct Undecided {
    reasons: Vec<Cow<'static, str>>,
    errors: Vec<Cow<'static, str>>,
}

impl Undecided {
    fn add(&mut self, decision: Decision) {
        let Decision { reason, error, .. } = decision;
        self.reasons.extend(Some(reason).filter(|reason| !reason.is_empty()));
        self.errors.extend(Some(error).filter(|error| !error.is_empty()));
    }

    fn end(self) -> Decision {
        let decision = Decision::no_opinion(self.reasons.join("\n"));
        if self.errors.is_empty() { decision } else { decision.with_error(aggregate(&self.errors)) }
    }
}

/// The 403 Status of a refused question, in upstream's words.
#[must_use]
pub fn forbidden(attributes: &Attributes, reason: &str) -> Status {
    let mut why = attributes.describe();
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(reason);
    }
    let r = &attributes.request;
    if r.is_resource_request {
        Status::forbidden(&GroupResource::new(&r.api_group, &r.resource), &r.name, &why)
    } else {
        Status::forbidden(&GroupResource::new("", ""), "", &why)
    }
}
