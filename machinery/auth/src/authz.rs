//! What a caller may do: the trait, its answers, and the 403 that follows from a refusal.
//!
//! Upstream rules: generic API server 11.3 and 10. Must not know where the question came from.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portico_machinery::rbac::{Rule, cluster_admin};
use portico_machinery::{Attributes, GroupResource, Status, UserInfo};

mod builtin;
mod mode;
pub mod node;
mod rbac;

pub use builtin::{Facades, Masters};
pub use mode::{Mode, of_modes};
pub use node::{Node, Relations};
pub use rbac::Rbac;

/// An authorizer's opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allow,
    /// No, and nobody else is asked.
    Deny,
    /// Ask the next one; at the end of the chain this is a no.
    NoOpinion,
    /// It cannot be told here: whoever keeps the objects has to be asked, and until then this is a no.
    Ask,
}

/// An opinion and its grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The opinion.
    pub verdict: Verdict,
    /// Why; appended to the 403's message and written as audit annotation `authorization.k8s.io/reason`. Often empty.
    pub reason: Cow<'static, str>,
}

impl Decision {
    /// Yes, for this reason.
    pub fn allow(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict: Verdict::Allow, reason: reason.into() }
    }

    /// No, for this reason.
    pub fn deny(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict: Verdict::Deny, reason: reason.into() }
    }

    /// No opinion, for this reason.
    pub fn no_opinion(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict: Verdict::NoOpinion, reason: reason.into() }
    }

    /// Ask whoever keeps the objects.
    #[must_use]
    pub fn ask() -> Self {
        Self { verdict: Verdict::Ask, reason: Cow::Borrowed("") }
    }

    /// Whether the caller may.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.verdict == Verdict::Allow
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

/// Decides from memory, without waiting.
pub trait Authorizer: Send + Sync {
    /// May this user do this?
    fn authorize(&self, attributes: &Attributes) -> Decision;

    /// What this user may do in a namespace (empty: at cluster scope alone). By default there is nothing to list.
    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> Rules {
        Rules::default()
    }

    /// The same as a result: the 403 to answer with when the caller may not.
    ///
    /// # Errors
    /// The `Forbidden` Status of [`forbidden`].
    fn check(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        let decision = self.authorize(attributes);
        if decision.allowed() { Ok(()) } else { Err(Box::new(forbidden(attributes, &decision.reason))) }
    }
}

impl<A: Authorizer + ?Sized> Authorizer for Arc<A> {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        (**self).authorize(attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        (**self).rules_for(user, namespace)
    }
}

/// A decision on its way; nothing when nobody could be asked.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Option<Decision>> + Send + 'a>>;

/// Whoever keeps the objects, for what cannot be told without them ([`Verdict::Ask`]).
pub trait Decider: Send + Sync {
    /// May this user do this?
    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Deciding<'a>;
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

/// Authorizers in order: the first that has an opinion or must ask for one wins, the reasons of those without opinion are joined by newlines.
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
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            let decision = authorizer.authorize(attributes);
            if decision.verdict != Verdict::NoOpinion {
                return decision;
            }
            if !decision.reason.is_empty() {
                reasons.push(decision.reason);
            }
        }
        Decision::no_opinion(reasons.join("\n"))
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
