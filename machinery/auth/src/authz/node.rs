//! Node authorizer: a kubelet may read the objects that pods of its node need, and write objects of its node.
//!
//! Upstream rules: plugin/pkg/auth/authorizer/node of 1.36 with AuthorizeNodeWithSelectors. Relations between objects and nodes
//! are looked up in a [`Graph`]; processes without a graph delegate the decision. The authorizer has no opinion about unknown
//! objects, so an empty graph allows nothing.

mod facts;
mod graph;
mod rules;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::RwLock;
use portico_machinery::selector::FieldSelector;
use portico_machinery::{Attributes, RequestInfo, UserInfo};

use super::{Authorizer, Decision, UserRules};
pub use graph::{Graph, NodeFact, Vertex, VertexKind};
pub use source::EdgeSource;

/// Namespace of node leases.
const LEASES: &str = "kube-node-lease";
/// Field that a selector must restrict to the node.
const NODE_NAME: &str = "spec.nodeName";

/// Access to the relations between objects and nodes.
#[derive(Clone, Debug)]
pub enum NodeRelations {
    /// This process has the graph.
    Local {
        /// Graph of the objects seen so far.
        graph: Arc<RwLock<Graph>>,
        /// Enabled features.
        features: NodeFeatures,
    },
    /// The control service has the graph; decisions are delegated to it.
    Remote,
}

/// Feature gates of node authorization that are off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFeatures {
    /// Feature gate `PodCertificateRequest`.
    pub pod_certificates: bool,
    /// Feature gate `ClusterTrustBundle`.
    pub trust_bundles: bool,
}

/// Node authorizer.
#[derive(Clone, Debug)]
pub struct NodeAuthorizer {
    relations: NodeRelations,
}

impl NodeAuthorizer {
    /// Returns an authorizer that uses these relations.
    #[must_use]
    pub fn new(relations: NodeRelations) -> Self {
        Self { relations }
    }

    fn authorize_node(&self, node: &str, r: &RequestInfo) -> Decision {
        let at = match (r.api_group.as_str(), r.resource.as_str()) {
            _ if !r.is_resource_request => return self.authorize_by_rules(r),
            ("", "secrets") => return self.authorize_read(node, VertexKind::Secret, r),
            ("", "configmaps") => return self.authorize_read(node, VertexKind::ConfigMap, r),
            ("", "persistentvolumeclaims") if r.subresource == "status" => {
                return self.authorize_claim_status(node, r);
            }
            ("", "persistentvolumeclaims") => VertexKind::Claim,
            ("", "persistentvolumes") => VertexKind::Volume,
            ("resource.k8s.io", "resourceclaims") => VertexKind::ResourceClaim,
            ("storage.k8s.io", "volumeattachments") => VertexKind::Attachment,
            ("", "serviceaccounts") => return self.authorize_service_account(node, r),
            ("coordination.k8s.io", "leases") => return authorize_lease(node, r),
            ("storage.k8s.io", "csinodes") => return authorize_csi_node(node, r),
            ("resource.k8s.io", "resourceslices") => return self.authorize_resource_slice(node, r),
            ("", "nodes") => return authorize_own_node(node, r),
            ("", "pods") => return self.authorize_pod(node, r),
            ("certificates.k8s.io", "podcertificaterequests") => {
                return self.authorize_pod_certificate(node, r);
            }
            _ => return self.authorize_by_rules(r),
        };
        self.authorize_get(node, at, r)
    }

    /// Decides by the rules that apply to all nodes.
    fn authorize_by_rules(&self, r: &RequestInfo) -> Decision {
        if rules::NODE_RULES.iter().any(|rule| rule.allows(r)) {
            return Decision::allow("");
        }
        if !rules::TRUST_BUNDLES.allows(r) {
            return Decision::no_opinion("");
        }
        match &self.relations {
            NodeRelations::Local { features, .. } if features.trust_bundles => Decision::allow(""),
            NodeRelations::Local { .. } => Decision::no_opinion(""),
            NodeRelations::Remote => Decision::delegate(),
        }
    }

    fn authorize_get(&self, node: &str, kind: VertexKind, r: &RequestInfo) -> Decision {
        if r.verb != "get" {
            return Decision::no_opinion("can only get individual resources of this type");
        }
        if !r.subresource.is_empty() {
            return Decision::no_opinion("cannot get subresource");
        }
        self.authorize_by_name(node, kind, r)
    }

    fn authorize_read(&self, node: &str, kind: VertexKind, r: &RequestInfo) -> Decision {
        if !r.is_read_only() {
            return Decision::no_opinion("can only read resources of this type");
        }
        if !r.subresource.is_empty() {
            return Decision::no_opinion("cannot read subresource");
        }
        if r.namespace.is_empty() {
            return Decision::no_opinion("can only read namespaced object of this type");
        }
        self.authorize_by_name(node, kind, r)
    }

    fn authorize_claim_status(&self, node: &str, r: &RequestInfo) -> Decision {
        match r.verb.as_str() {
            "update" | "patch" => self.authorize_by_name(node, VertexKind::Claim, r),
            _ => Decision::no_opinion("can only get/update/patch this type"),
        }
    }

    fn authorize_service_account(&self, node: &str, r: &RequestInfo) -> Decision {
        match (r.verb.as_str(), r.subresource.as_str()) {
            ("get", "") => self.authorize_read(node, VertexKind::ServiceAccount, r),
            ("create", _) if r.name.is_empty() => {
                Decision::no_opinion("can only create tokens for individual service accounts")
            }
            ("create", "token") => self.authorize_by_name(node, VertexKind::ServiceAccount, r),
            ("create", _) => Decision::no_opinion("can only create token subresource of serviceaccount"),
            _ => Decision::no_opinion("can only create tokens for individual service accounts"),
        }
    }

    fn authorize_resource_slice(&self, node: &str, r: &RequestInfo) -> Decision {
        if !r.subresource.is_empty() {
            return Decision::no_opinion("cannot authorize ResourceSlice subresources");
        }
        match r.verb.as_str() {
            // The NodeRestriction plugin checks the node of the slice.
            "create" => Decision::allow(""),
            "get" | "update" | "patch" | "delete" => self.authorize_by_name(node, VertexKind::Slice, r),
            "watch" | "list" | "deletecollection" if selects_node(node, r) => Decision::allow(""),
            "watch" | "list" | "deletecollection" => Decision::no_opinion(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => Decision::no_opinion(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                 delete, deletecollection",
            ),
        }
    }

    fn authorize_pod_certificate(&self, node: &str, r: &RequestInfo) -> Decision {
        match &self.relations {
            NodeRelations::Remote => return Decision::delegate(),
            NodeRelations::Local { features, .. } if !features.pod_certificates => {
                return Decision::no_opinion("");
            }
            NodeRelations::Local { .. } => {}
        }
        if !r.subresource.is_empty() {
            let reason = "nodes may not access the status subresource of PodCertificateRequests";
            return Decision::no_opinion(reason);
        }
        match r.verb.as_str() {
            // The NodeRestriction plugin checks the node of the request.
            "create" => Decision::allow(""),
            "get" => self.authorize_by_name(node, VertexKind::CertificateRequest, r),
            "list" | "watch" if selects_node(node, r) => Decision::allow(""),
            "list" | "watch" => Decision::no_opinion(
                "can only list/watch podcertificaterequests with nodeName field selector",
            ),
            verb => Decision::no_opinion(format!("nodes may not {verb} podcertificaterequests")),
        }
    }

    fn authorize_pod(&self, node: &str, r: &RequestInfo) -> Decision {
        match (r.subresource.as_str(), r.verb.as_str()) {
            ("", "get") => self.authorize_by_name(node, VertexKind::Pod, r),
            ("", "list" | "watch") if selects_node(node, r) => Decision::allow(""),
            ("", "list" | "watch") if !r.name.is_empty() => self.authorize_by_name(node, VertexKind::Pod, r),
            ("", "list" | "watch") => {
                Decision::no_opinion("can only list/watch pods with spec.nodeName field selector")
            }
            // Mirror pods, their status, and evictions: the NodeRestriction plugin checks the node of the pod.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Decision::allow("")
            }
            _ => Decision::no_opinion(""),
        }
    }

    /// Decides by the relation between the named object and the node.
    fn authorize_by_name(&self, node: &str, kind: VertexKind, r: &RequestInfo) -> Decision {
        if r.name.is_empty() {
            return Decision::no_opinion("No Object name found");
        }
        let NodeRelations::Local { graph, .. } = &self.relations else { return Decision::delegate() };
        if graph.read().is_related(node, &Vertex::new(kind, &r.namespace, &r.name)) {
            return Decision::allow("");
        }
        Decision::no_opinion(format!("no relationship found between node '{node}' and this object"))
    }
}

impl Authorizer for NodeAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        match attributes.user.node() {
            None => Decision::no_opinion(""),
            Some("") => Decision::no_opinion(format!("unknown node for user {:?}", attributes.user.name)),
            Some(node) => self.authorize_node(node, &attributes.request),
        }
    }

    fn rules_for(&self, user: &UserInfo, _: &str) -> UserRules {
        match user.node() {
            None => UserRules::default(),
            Some(_) => UserRules {
                errors: vec!["node authorizer does not support user rule resolution".to_owned()],
                incomplete: true,
                ..UserRules::default()
            },
        }
    }
}

/// True if the field selector restricts the request to objects of the node.
fn selects_node(node: &str, r: &RequestInfo) -> bool {
    let Ok(selector) = FieldSelector::parse(&r.field_selector) else { return false };
    selector.terms().iter().any(|term| !term.negated && term.field == NODE_NAME && term.value == node)
}

fn authorize_lease(node: &str, r: &RequestInfo) -> Decision {
    if !matches!(r.verb.as_str(), "get" | "create" | "update" | "patch" | "delete") {
        return Decision::no_opinion("can only get, create, update, patch, or delete a node lease");
    }
    if r.namespace != LEASES {
        return Decision::no_opinion(format!("can only access leases in the {LEASES:?} system namespace"));
    }
    // A create request has no name here; the NodeRestriction plugin checks the object.
    if r.verb != "create" && r.name != node {
        let reason = "can only access node lease with the same name as the requesting node";
        return Decision::no_opinion(reason);
    }
    Decision::allow("")
}

fn authorize_csi_node(node: &str, r: &RequestInfo) -> Decision {
    if !matches!(r.verb.as_str(), "get" | "create" | "update" | "patch" | "delete") {
        return Decision::no_opinion("can only get, create, update, patch, or delete a CSINode");
    }
    if !r.subresource.is_empty() {
        return Decision::no_opinion("cannot authorize CSINode subresources");
    }
    if r.verb != "create" && r.name != node {
        return Decision::no_opinion("can only access CSINode with the same name as the requesting node");
    }
    Decision::allow("")
}

/// Decides about Node objects, by name instead of the graph: a kubelet reads its node before the object exists.
fn authorize_own_node(node: &str, r: &RequestInfo) -> Decision {
    match (r.subresource.as_str(), r.verb.as_str()) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Decision::allow(""),
        ("", "get" | "list" | "watch") if r.name == node => Decision::allow(""),
        ("", "get" | "list" | "watch") if r.name.is_empty() => {
            Decision::no_opinion(format!("node '{node}' cannot read all nodes, only its own Node object"))
        }
        ("", "get" | "list" | "watch") => {
            Decision::no_opinion(format!("node '{node}' cannot read '{}', only its own Node object", r.name))
        }
        _ => Decision::no_opinion(""),
    }
}
