//! `--authorization-mode`: selection and order of the authorizers.

use std::sync::Arc;

use portico_machinery::{Attributes, UserInfo};

use super::{
    AlwaysAllow, AlwaysDeny, Authorizer, AuthorizerUnion, Decision, Facades, Masters, Node, Relations, Rules,
};

/// Authorization mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Node authorization: kubelets by the objects that their nodes use.
    Node,
    /// Roles and bindings.
    Rbac,
    /// Allows everything.
    AlwaysAllow,
    /// Denies everything, except for `system:masters`.
    AlwaysDeny,
    /// Policies of a file, which the control service reads.
    Abac,
    /// Decisions of a webhook, which the control service calls.
    Webhook,
}

/// All modes, in upstream's order.
pub const MODES: [Mode; 6] =
    [Mode::AlwaysAllow, Mode::AlwaysDeny, Mode::Abac, Mode::Webhook, Mode::Rbac, Mode::Node];

impl Mode {
    /// Returns upstream's name of the mode.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Rbac => "RBAC",
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Abac => "ABAC",
            Self::Webhook => "Webhook",
        }
    }

    /// Returns the mode with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        MODES.into_iter().find(|mode| mode.name() == name)
    }
}

/// Placeholder for authorizers of the control service, which always delegates.
struct AlwaysAsk;

impl Authorizer for AlwaysAsk {
    fn authorize(&self, _: &Attributes) -> Decision {
        Decision::ask()
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules { incomplete: true, ..Rules::default() }
    }
}

/// Returns the authorizers of these modes, preceded by the authorizers that are always active.
#[must_use]
pub fn of_modes(modes: &[Mode], rbac: &Arc<dyn Authorizer>, relations: &Relations) -> Arc<dyn Authorizer> {
    let mut all: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters), Arc::new(Facades)];
    all.extend(modes.iter().map(|mode| match mode {
        Mode::Node => Arc::new(Node::new(relations.clone())) as Arc<dyn Authorizer>,
        Mode::Rbac => Arc::clone(rbac),
        Mode::AlwaysAllow => Arc::new(AlwaysAllow),
        Mode::AlwaysDeny => Arc::new(AlwaysDeny),
        Mode::Abac | Mode::Webhook => Arc::new(AlwaysAsk),
    }));
    Arc::new(AuthorizerUnion::new(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::Rbac;

    fn empty() -> Arc<dyn Authorizer> {
        Arc::new(Rbac::default())
    }

    #[test]
    fn the_decider_is_asked_before_a_later_mode_denies() {
        let node = UserInfo::new("system:node:a", ["system:nodes"]);
        let secret = portico_machinery::GroupResource::new("", "secrets");
        let question = Attributes::resource(node, "get", &secret, "ns", "s");
        let asked =
            |modes: &[Mode]| of_modes(modes, &empty(), &Relations::Remote).authorize(&question).verdict;
        assert_eq!(asked(&[Mode::Node, Mode::Rbac]), super::super::Verdict::Ask);
        assert_eq!(asked(&[Mode::AlwaysAllow, Mode::Node]), super::super::Verdict::Allow);
        assert_eq!(asked(&[Mode::Webhook, Mode::AlwaysAllow]), super::super::Verdict::Ask);
        assert_eq!(asked(&[Mode::Abac, Mode::AlwaysAllow]), super::super::Verdict::Ask);
    }

    #[test]
    fn a_mode_is_known_by_its_name() {
        assert!(MODES.into_iter().all(|mode| Mode::of_name(mode.name()) == Some(mode)));
        assert_eq!(Mode::of_name("rbac"), None);
    }

    #[test]
    fn the_first_mode_with_an_opinion_decides() {
        let (rbac, alice) = (empty(), UserInfo::new("alice", ["dev"]));
        let admin = UserInfo::new("admin", ["system:masters"]);
        for (modes, may, why) in [
            (&[Mode::Rbac][..], false, ""),
            (&[Mode::Rbac, Mode::AlwaysAllow], true, ""),
            (&[Mode::AlwaysDeny], false, "Everything is forbidden."),
            (&[], false, ""),
        ] {
            let authorizer = of_modes(modes, &rbac, &Relations::Remote);
            let ask = |user: &UserInfo| authorizer.authorize(&Attributes::path(user.clone(), "get", "/x"));
            assert_eq!((ask(&alice).allowed(), ask(&admin).allowed()), (may, true), "{modes:?}");
            assert_eq!(ask(&alice).reason, why, "{modes:?}");
        }
    }
}
