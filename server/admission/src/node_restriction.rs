//! NodeRestriction: a kubelet may write only objects of its node, and only fields that do not extend its permissions.
//!
//! The Node authorizer decides which objects a kubelet may read, and which other objects it may write at all.

mod audiences;
mod certificate_requests;
mod claims;
mod evictions;
mod node_objects;
mod node_request;
mod nodes;
mod pods;
mod tokens;

use portico_registry::{Objects, Operation, Result};

use self::node_request::NodeRequest;
use crate::plugin::{ANY, DeleteRequest, MutationFuture, MutationRequest, Plugin, ResourcePattern};
use crate::settings::AdmissionSettings;

/// NodeRestriction plugin.
pub(super) struct NodeRestriction {
    /// True if the gate `AllowInsecureKubeletCertificateSigningRequests` is enabled.
    allows_insecure_requests: bool,
    /// True if the gate `ServiceAccountNodeAudienceRestriction` is enabled.
    restricts_audiences: bool,
}

impl NodeRestriction {
    /// Creates the plugin as the feature gates require.
    pub(super) fn new(settings: &AdmissionSettings) -> Self {
        let gate = |name| settings.features.enabled(name);
        Self {
            allows_insecure_requests: gate("AllowInsecureKubeletCertificateSigningRequests"),
            restricts_audiences: gate("ServiceAccountNodeAudienceRestriction"),
        }
    }

    async fn check(&self, node_request: NodeRequest<'_>) -> Result<()> {
        let Some(node) = node_request.attributes.context.user.node() else { return Ok(()) };
        if node.is_empty() {
            let user = &node_request.attributes.context.user.name;
            return Err(node_request.forbidden(&format!("could not determine node from user {user:?}")));
        }
        let resource = &node_request.attributes.served_resource.resource;
        match (resource.group.as_str(), resource.resource.as_str(), node_request.attributes.subresource()) {
            ("", "pods", "") => pods::check(&node_request, node).await,
            ("", "pods", "status") => pods::check_status(&node_request, node),
            ("", "pods", "eviction") => evictions::check(&node_request, node).await,
            ("", "pods", other) => Err(node_request.forbidden(&format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            ))),
            ("", "nodes", _) => nodes::check(&node_request, node),
            ("", "persistentvolumeclaims", "status") => claims::check_status(&node_request, node),
            ("", "persistentvolumeclaims", _) => Err(node_request.forbidden("may only update PVC status")),
            ("", "serviceaccounts", "token") => {
                tokens::check(&node_request, node, self.restricts_audiences).await
            }
            ("coordination.k8s.io", "leases", _) => node_objects::check_lease(&node_request, node),
            ("storage.k8s.io", "csinodes", _) => node_objects::check_csi_node(&node_request, node),
            ("resource.k8s.io", "resourceslices", _) => node_objects::check_slice(&node_request, node),
            ("certificates.k8s.io", "certificatesigningrequests", _) if !self.allows_insecure_requests => {
                certificate_requests::check(&node_request, node)
            }
            _ => Ok(()),
        }
    }
}

impl Plugin for NodeRestriction {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[
            ("", "pods", ANY),
            ("", "nodes", ANY),
            ("", "persistentvolumeclaims", ANY),
            ("", "serviceaccounts", "token"),
            ("coordination.k8s.io", "leases", ANY),
            ("storage.k8s.io", "csinodes", ANY),
            ("resource.k8s.io", "resourceslices", ANY),
            ("certificates.k8s.io", "certificatesigningrequests", ANY),
        ]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create, Operation::Update, Operation::Delete]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, request: MutationRequest<'a>) -> MutationFuture<'a> {
        let MutationRequest { attributes, new, old } = request;
        Box::pin(self.check(NodeRequest { objects, attributes, new: Some(new), old }))
    }

    fn admit_delete<'a>(&'a self, objects: &'a Objects, request: DeleteRequest<'a>) -> MutationFuture<'a> {
        let DeleteRequest { attributes, old } = request;
        Box::pin(self.check(NodeRequest { objects, attributes, new: None, old }))
    }
}
