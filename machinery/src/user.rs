//! Users and well-known groups.

use std::collections::BTreeMap;

/// Group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of all unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// Group whose members may read metrics and health.
const MONITORING: &str = "system:monitoring";
/// Group of kubelets.
pub const NODES: &str = "system:nodes";
/// Prefix of the user names of kubelets.
const NODE_PREFIX: &str = "system:node:";
/// User name of a caller without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// User name under which backends are probed and their discovery is fetched.
pub const AGGREGATOR: &str = "system:kube-aggregator";

/// User as authenticated, or as set by impersonation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// User name.
    pub name: String,
    /// Stable ID, often empty.
    pub uid: String,
    /// Groups of the user, in order.
    pub groups: Vec<String>,
    /// Additional attributes, with keys in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// Creates a user with this name and these groups.
    pub fn new<G: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Returns the user of callers without credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// True if the user is in this group.
    #[must_use]
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// True if traces that the user has started are continued, including sampling (upstream's `notSystemPrivilegedGroup`).
    #[must_use]
    pub fn may_start_traces(&self) -> bool {
        self.in_group(MASTERS) || self.in_group(MONITORING)
    }

    /// Returns the node of a kubelet's user (upstream's `NodeIdentity`), empty if the user name has no node name. Returns `None`
    /// for all other users.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.name.strip_prefix(NODE_PREFIX).filter(|_| self.in_group(NODES))
    }

    /// True if the group `system:authenticated` has to be added: the user is in neither authentication group, and is not the
    /// anonymous user (upstream's `AuthenticatedGroupAdder`).
    #[must_use]
    pub fn needs_authenticated_group(&self) -> bool {
        self.name != ANONYMOUS && !self.in_group(AUTHENTICATED) && !self.in_group(UNAUTHENTICATED)
    }

    /// Adds `system:authenticated`, unless the user is in `system:unauthenticated`.
    #[must_use]
    pub fn with_authenticated_group(mut self) -> Self {
        if self.needs_authenticated_group() {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
