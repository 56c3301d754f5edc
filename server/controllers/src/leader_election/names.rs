//! Name, user and resources of the controller.

use portico_machinery::GroupResource;

/// Upstream's name of the controller, and of the Lease of the server that runs it.
pub const NAME: &str = "leader-election-controller";
/// User name of kube-apiserver's own clients.
pub(super) const USER: &str = "system:apiserver";

pub(super) fn candidates() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leasecandidates")
}

pub(super) fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}
