//! `--authorization-mode`: which authorizers are asked, in which order.

use std::sync::Arc;

use super::{AlwaysAllow, AlwaysDeny, Authorizer, AuthorizerUnion, Facades, Masters, Node, Relations};

/// One of the modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Kubelets by what their nodes run.
    Node,
    /// By roles and bindings.
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
    /// Nobody but `system:masters` may do anything.
    AlwaysDeny,
}

/// The authorizers of these modes behind those that no mode turns off.
#[must_use]
pub fn of_modes(modes: &[Mode], rbac: &Arc<dyn Authorizer>, relations: &Relations) -> Arc<dyn Authorizer> {
    let mut all: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters), Arc::new(Facades)];
    all.extend(modes.iter().map(|mode| match mode {
        Mode::Node => Arc::new(Node::new(relations.clone())) as Arc<dyn Authorizer>,
        Mode::Rbac => Arc::clone(rbac),
        Mode::AlwaysAllow => Arc::new(AlwaysAllow),
        Mode::AlwaysDeny => Arc::new(AlwaysDeny),
    }));
    Arc::new(AuthorizerUnion::new(all))
}

#[cfg(test)]
mod tests {
    use portico_machinery::{Attributes, UserInfo};

    use super::*;
    use crate::authz::Rbac;

    fn empty() -> Arc<dyn Authorizer> {
        Arc::new(Rbac::default())
    }

    #[test]
    fn what_cannot_be_told_here_is_asked_before_a_later_mode_says_no() {
        let node = UserInfo::new("system:node:a", ["system:nodes"]);
        let secret = portico_machinery::GroupResource::new("", "secrets");
        let question = Attributes::resource(node, "get", &secret, "ns", "s");
        let asked =
            |modes: &[Mode]| of_modes(modes, &empty(), &Relations::Elsewhere).authorize(&question).verdict;
        assert_eq!(asked(&[Mode::Node, Mode::Rbac]), super::super::Verdict::Ask);
        assert_eq!(asked(&[Mode::AlwaysAllow, Mode::Node]), super::super::Verdict::Allow);
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
            let authorizer = of_modes(modes, &rbac, &Relations::Elsewhere);
            let ask = |user: &UserInfo| authorizer.authorize(&Attributes::path(user.clone(), "get", "/x"));
            assert_eq!((ask(&alice).allowed(), ask(&admin).allowed()), (may, true), "{modes:?}");
            assert_eq!(ask(&alice).reason, why, "{modes:?}");
        }
    }
}
