//! What the controller is called, in whose name it writes, and the resources that it works on.

use portico_machinery::GroupResource;

/// Upstream's name for it, and for the Lease of the server that runs it.
pub const NAME: &str = "leader-election-controller";
/// The user of kube-apiserver's own clients.
pub(super) const USER: &str = "system:apiserver";

pub(super) fn candidates() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leasecandidates")
}

pub(super) fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}
