//! Extraction of node relations from objects. Everything else in the objects is ignored.

use std::collections::BTreeSet;

use portico_machinery::{Cursor, Object};

use super::graph::{NodeFact, Vertex, VertexKind};
use super::source::EdgeSource;

impl EdgeSource {
    /// Returns the vertex of the object with this name.
    #[must_use]
    pub fn vertex(self, namespace: &str, name: &str) -> Vertex {
        Vertex::new(self.kind(), namespace, name)
    }

    /// Returns the relation of an object, or `None` if it is not related to a node.
    #[must_use]
    pub fn fact(self, object: &Object) -> Option<NodeFact> {
        match self {
            Self::Pods => pod_fact(object),
            Self::Volumes => volume_fact(object),
            Self::Attachments | Self::Slices | Self::CertificateRequests => {
                bound_fact(object, BTreeSet::new())
            }
        }
    }
}

/// Annotation of a mirror pod, which a kubelet creates itself. Such a pod grants no access to other objects.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Volume sources in pods that name their secret by a reference.
const BY_REFERENCE: [&str; 7] = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];

fn bound_fact(object: &Object, references: BTreeSet<Vertex>) -> Option<NodeFact> {
    let node = object.str_at("spec.nodeName");
    (!node.is_empty())
        .then(|| NodeFact::Bound { node: node.into(), references: references.into_iter().collect() })
}

fn pod_fact(pod: &Object) -> Option<NodeFact> {
    let mut refers = References { namespace: pod.namespace(), found: BTreeSet::new() };
    if !pod.str_at("spec.nodeName").is_empty() && pod.annotation(MIRROR).is_none() {
        let spec = pod.at(&["spec"]);
        refers.add(VertexKind::ServiceAccount, spec.field("serviceAccountName").str());
        spec.field("imagePullSecrets")
            .items()
            .for_each(|secret| refers.add_reference(VertexKind::Secret, &secret));
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            spec.field(list).items().for_each(|container| refers.add_container(&container));
        }
        spec.field("volumes").items().for_each(|volume| refers.add_volume(pod.name(), &volume));
        refers.add_resource_claims(pod);
    }
    bound_fact(pod, refers.found)
}

/// Collector of the references of a pod.
struct References<'a> {
    namespace: &'a str,
    found: BTreeSet<Vertex>,
}

impl References<'_> {
    fn add(&mut self, kind: VertexKind, name: &str) {
        if !name.is_empty() {
            self.found.insert(Vertex::new(kind, self.namespace, name));
        }
    }

    fn add_reference(&mut self, kind: VertexKind, reference: &Cursor<'_>) {
        self.add(kind, reference.field("name").str());
    }

    fn add_container(&mut self, container: &Cursor<'_>) {
        for source in container.field("envFrom").items() {
            self.add_reference(VertexKind::Secret, &source.field("secretRef"));
            self.add_reference(VertexKind::ConfigMap, &source.field("configMapRef"));
        }
        for variable in container.field("env").items() {
            let from = variable.field("valueFrom");
            self.add_reference(VertexKind::Secret, &from.field("secretKeyRef"));
            self.add_reference(VertexKind::ConfigMap, &from.field("configMapKeyRef"));
        }
    }

    fn add_volume(&mut self, pod: &str, volume: &Cursor<'_>) {
        self.add(VertexKind::Secret, volume.field("secret").field("secretName").str());
        self.add(VertexKind::Secret, volume.field("azureFile").field("secretName").str());
        self.add_reference(VertexKind::ConfigMap, &volume.field("configMap"));
        self.add_reference(VertexKind::Secret, &volume.field("csi").field("nodePublishSecretRef"));
        for source in BY_REFERENCE {
            self.add_reference(VertexKind::Secret, &volume.field(source).field("secretRef"));
        }
        for source in volume.field("projected").field("sources").items() {
            self.add_reference(VertexKind::Secret, &source.field("secret"));
            self.add_reference(VertexKind::ConfigMap, &source.field("configMap"));
        }
        if volume.field("ephemeral").is_present() {
            self.add(VertexKind::Claim, &format!("{pod}-{}", volume.field("name").str()));
        } else {
            self.add(VertexKind::Claim, volume.field("persistentVolumeClaim").field("claimName").str());
        }
    }

    /// Adds claims that are named directly, and claims created from templates.
    fn add_resource_claims(&mut self, pod: &Object) {
        let status = pod.at(&["status"]);
        for claim in pod.at(&["spec", "resourceClaims"]).items() {
            let claim_name = claim.field("resourceClaimName");
            if claim_name.is_present() {
                self.add(VertexKind::ResourceClaim, claim_name.str());
            } else if claim.field("resourceClaimTemplateName").is_present() {
                let name = claim.field("name").str();
                let mut statuses = status.field("resourceClaimStatuses").items();
                if let Some(made) = statuses.find(|made| made.field("name").str() == name) {
                    self.add(VertexKind::ResourceClaim, made.field("resourceClaimName").str());
                }
            }
        }
        let extended = status.field("extendedResourceClaimStatus").field("resourceClaimName").str();
        self.add(VertexKind::ResourceClaim, extended);
    }
}

fn volume_fact(volume: &Object) -> Option<NodeFact> {
    let claim = volume.at(&["spec", "claimRef"]);
    if !claim.is_present() {
        return None;
    }
    let namespace = claim.field("namespace").str();
    let claim_vertex = Vertex::new(VertexKind::Claim, namespace, claim.field("name").str());
    let mut secrets = BTreeSet::new();
    let spec = volume.at(&["spec"]);
    let mut add = |explicit_namespace: &str, default: &str, name: &str| {
        if !name.is_empty() {
            secrets.insert(Vertex::new(
                VertexKind::Secret,
                if explicit_namespace.is_empty() { default } else { explicit_namespace },
                name,
            ));
        }
    };
    let azure = spec.field("azureFile");
    add(azure.field("secretNamespace").str(), namespace, azure.field("secretName").str());
    for (source, reference, default) in [
        ("cephfs", "secretRef", namespace),
        ("cinder", "secretRef", ""),
        ("flexVolume", "secretRef", namespace),
        ("rbd", "secretRef", namespace),
        ("scaleIO", "secretRef", namespace),
        ("iscsi", "secretRef", namespace),
        ("storageos", "secretRef", ""),
        // Secrets for publishing and expanding by controllers are excluded.
        ("csi", "nodePublishSecretRef", ""),
        ("csi", "nodeStageSecretRef", ""),
        ("csi", "nodeExpandSecretRef", ""),
    ] {
        let reference = spec.field(source).field(reference);
        add(reference.field("namespace").str(), default, reference.field("name").str());
    }
    Some(NodeFact::Claimed { claim: claim_vertex, secrets: secrets.into_iter().collect() })
}
