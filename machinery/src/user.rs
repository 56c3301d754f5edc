//! Who is calling.

use std::collections::BTreeMap;

/// Everybody who proved who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everybody who did not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// May do everything.
pub const MASTERS: &str = "system:masters";
/// Reads metrics and health.
const MONITORING: &str = "system:monitoring";
/// The group of kubelets.
pub const NODES: &str = "system:nodes";
/// What the names of kubelets begin with.
const NODE_PREFIX: &str = "system:node:";
/// The name of a caller without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The identity under which backends are probed and their discovery is fetched.
pub const AGGREGATOR: &str = "system:kube-aggregator";

/// A caller as authentication found it, or as impersonation replaced it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub name: String,
    /// A stable id, often empty.
    pub uid: String,
    /// Groups, in order.
    pub groups: Vec<String>,
    /// Extra facts, keys in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A user of this name and these groups.
    pub fn new<G: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The caller without credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// Whether the user is in this group.
    #[must_use]
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether traces that the user has begun are gone on with, sampling included (upstream's `notSystemPrivilegedGroup`).
    #[must_use]
    pub fn begins_traces(&self) -> bool {
        self.in_group(MASTERS) || self.in_group(MONITORING)
    }

    /// The node that a kubelet's user is (upstream's `NodeIdentity`); empty when the name says none, nothing for everybody
    /// else.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.name.strip_prefix(NODE_PREFIX).filter(|_| self.in_group(NODES))
    }

    /// True if the group `system:authenticated` has to be added: the user is in neither group of authentication, and not named as
    /// anonymous users are (upstream's `AuthenticatedGroupAdder`).
    #[must_use]
    pub fn lacks_authenticated(&self) -> bool {
        self.name != ANONYMOUS && !self.in_group(AUTHENTICATED) && !self.in_group(UNAUTHENTICATED)
    }

    /// Adds `system:authenticated`, unless the user is marked unauthenticated.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if self.lacks_authenticated() {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
