//! `--authorization-mode`: selection and order of the authorizers.

use std::sync::Arc;

use portico_machinery::{Attributes, UserInfo};

use super::{
    AlwaysAllow, AlwaysDeny, Authorizer, AuthorizerUnion, Decision, FacadesAuthorizer, MastersAuthorizer,
    NodeAuthorizer, NodeRelations, UserRules,
};

/// Authorization mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AuthorizationMode {
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
pub const MODES: [AuthorizationMode; 6] = [
    AuthorizationMode::AlwaysAllow,
    AuthorizationMode::AlwaysDeny,
    AuthorizationMode::Abac,
    AuthorizationMode::Webhook,
    AuthorizationMode::Rbac,
    AuthorizationMode::Node,
];

impl AuthorizationMode {
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
    pub fn from_name(name: &str) -> Option<Self> {
        MODES.into_iter().find(|mode| mode.name() == name)
    }
}

/// Placeholder for authorizers of the control service, which always delegates.
struct AlwaysDelegate;

impl Authorizer for AlwaysDelegate {
    fn authorize(&self, _: &Attributes) -> Decision {
        Decision::delegate()
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> UserRules {
        UserRules { incomplete: true, ..UserRules::default() }
    }
}

/// Returns the authorizers of these modes, preceded by the authorizers that are always active.
#[must_use]
pub fn authorizer_for_modes(
    modes: &[AuthorizationMode],
    rbac: &Arc<dyn Authorizer>,
    relations: &NodeRelations,
) -> Arc<dyn Authorizer> {
    let mut all: Vec<Arc<dyn Authorizer>> = vec![Arc::new(MastersAuthorizer), Arc::new(FacadesAuthorizer)];
    all.extend(modes.iter().map(|mode| match mode {
        AuthorizationMode::Node => Arc::new(NodeAuthorizer::new(relations.clone())) as Arc<dyn Authorizer>,
        AuthorizationMode::Rbac => Arc::clone(rbac),
        AuthorizationMode::AlwaysAllow => Arc::new(AlwaysAllow),
        AuthorizationMode::AlwaysDeny => Arc::new(AlwaysDeny),
        AuthorizationMode::Abac | AuthorizationMode::Webhook => Arc::new(AlwaysDelegate),
    }));
    Arc::new(AuthorizerUnion::new(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::RbacAuthorizer;

    fn empty() -> Arc<dyn Authorizer> {
        Arc::new(RbacAuthorizer::default())
    }

    #[test]
    fn the_remote_authorizer_is_called_before_a_later_mode_denies() {
        let node = UserInfo::new("system:node:a", ["system:nodes"]);
        let secret = portico_machinery::GroupResource::new("", "secrets");
        let question = Attributes::resource(node, "get", &secret, "ns", "s");
        let verdict = |modes: &[AuthorizationMode]| {
            authorizer_for_modes(modes, &empty(), &NodeRelations::Remote).authorize(&question).verdict
        };
        assert_eq!(
            verdict(&[AuthorizationMode::Node, AuthorizationMode::Rbac]),
            super::super::Verdict::Delegate
        );
        assert_eq!(
            verdict(&[AuthorizationMode::AlwaysAllow, AuthorizationMode::Node]),
            super::super::Verdict::Allow
        );
        assert_eq!(
            verdict(&[AuthorizationMode::Webhook, AuthorizationMode::AlwaysAllow]),
            super::super::Verdict::Delegate
        );
        assert_eq!(
            verdict(&[AuthorizationMode::Abac, AuthorizationMode::AlwaysAllow]),
            super::super::Verdict::Delegate
        );
    }

    #[test]
    fn modes_are_parsed_by_name() {
        assert!(MODES.into_iter().all(|mode| AuthorizationMode::from_name(mode.name()) == Some(mode)));
        assert_eq!(AuthorizationMode::from_name("rbac"), None);
    }

    #[test]
    fn the_first_mode_with_an_opinion_decides() {
        let (rbac, alice) = (empty(), UserInfo::new("alice", ["dev"]));
        let admin = UserInfo::new("admin", ["system:masters"]);
        for (modes, allowed, reason) in [
            (&[AuthorizationMode::Rbac][..], false, ""),
            (&[AuthorizationMode::Rbac, AuthorizationMode::AlwaysAllow], true, ""),
            (&[AuthorizationMode::AlwaysDeny], false, "Everything is forbidden."),
            (&[], false, ""),
        ] {
            let authorizer = authorizer_for_modes(modes, &rbac, &NodeRelations::Remote);
            let ask = |user: &UserInfo| authorizer.authorize(&Attributes::path(user.clone(), "get", "/x"));
            assert_eq!((ask(&alice).is_allowed(), ask(&admin).is_allowed()), (allowed, true), "{modes:?}");
            assert_eq!(ask(&alice).reason, reason, "{modes:?}");
        }
    }
}
