//! Extraction of node relations from objects. Everything else in the objects is ignored.

use std::collections::BTreeSet;

use portico_machinery::{Cursor, Object};

use super::graph::{Fact, Kind, Vertex};
use super::source::Source;

impl Source {
    /// Returns the vertex of the object with this name.
    #[must_use]
    pub fn vertex(self, namespace: &str, name: &str) -> Vertex {
        Vertex::new(self.kind(), namespace, name)
    }

    /// Returns the relation of an object, or `None` if it is not related to a node.
    #[must_use]
    pub fn fact(self, object: &Object) -> Option<Fact> {
        match self {
            Self::Pods => pod(object),
            Self::Volumes => volume(object),
            Self::Attachments | Self::Slices | Self::CertificateRequests => bound(object, BTreeSet::new()),
        }
    }
}

/// Annotation of a mirror pod, which a kubelet creates itself. Such a pod grants no access to other objects.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Volume sources in pods that name their secret by a reference.
const BY_REFERENCE: [&str; 7] = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];

fn bound(object: &Object, refers: BTreeSet<Vertex>) -> Option<Fact> {
    let node = object.str_at("spec.nodeName");
    (!node.is_empty()).then(|| Fact::Bound { node: node.into(), refers: refers.into_iter().collect() })
}

fn pod(pod: &Object) -> Option<Fact> {
    let mut refers = References { namespace: pod.namespace(), found: BTreeSet::new() };
    if !pod.str_at("spec.nodeName").is_empty() && pod.annotation(MIRROR).is_none() {
        let spec = pod.at(&["spec"]);
        refers.add(Kind::ServiceAccount, spec.field("serviceAccountName").str());
        spec.field("imagePullSecrets").items().for_each(|secret| refers.named(Kind::Secret, &secret));
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            spec.field(list).items().for_each(|container| refers.of_container(&container));
        }
        spec.field("volumes").items().for_each(|volume| refers.of_volume(pod.name(), &volume));
        refers.resource_claims(pod);
    }
    bound(pod, refers.found)
}

/// Collector of the references of a pod.
struct References<'a> {
    namespace: &'a str,
    found: BTreeSet<Vertex>,
}

impl References<'_> {
    fn add(&mut self, kind: Kind, name: &str) {
        if !name.is_empty() {
            self.found.insert(Vertex::new(kind, self.namespace, name));
        }
    }

    fn named(&mut self, kind: Kind, reference: &Cursor<'_>) {
        self.add(kind, reference.field("name").str());
    }

    fn of_container(&mut self, container: &Cursor<'_>) {
        for source in container.field("envFrom").items() {
            self.named(Kind::Secret, &source.field("secretRef"));
            self.named(Kind::ConfigMap, &source.field("configMapRef"));
        }
        for variable in container.field("env").items() {
            let from = variable.field("valueFrom");
            self.named(Kind::Secret, &from.field("secretKeyRef"));
            self.named(Kind::ConfigMap, &from.field("configMapKeyRef"));
        }
    }

    fn of_volume(&mut self, pod: &str, volume: &Cursor<'_>) {
        self.add(Kind::Secret, volume.field("secret").field("secretName").str());
        self.add(Kind::Secret, volume.field("azureFile").field("secretName").str());
        self.named(Kind::ConfigMap, &volume.field("configMap"));
        self.named(Kind::Secret, &volume.field("csi").field("nodePublishSecretRef"));
        for source in BY_REFERENCE {
            self.named(Kind::Secret, &volume.field(source).field("secretRef"));
        }
        for source in volume.field("projected").field("sources").items() {
            self.named(Kind::Secret, &source.field("secret"));
            self.named(Kind::ConfigMap, &source.field("configMap"));
        }
        if volume.field("ephemeral").is_present() {
            self.add(Kind::Claim, &format!("{pod}-{}", volume.field("name").str()));
        } else {
            self.add(Kind::Claim, volume.field("persistentVolumeClaim").field("claimName").str());
        }
    }

    /// Adds claims that are named directly, and claims created from templates.
    fn resource_claims(&mut self, pod: &Object) {
        let status = pod.at(&["status"]);
        for claim in pod.at(&["spec", "resourceClaims"]).items() {
            let own = claim.field("resourceClaimName");
            if own.is_present() {
                self.add(Kind::ResourceClaim, own.str());
            } else if claim.field("resourceClaimTemplateName").is_present() {
                let name = claim.field("name").str();
                let mut made = status.field("resourceClaimStatuses").items();
                if let Some(made) = made.find(|made| made.field("name").str() == name) {
                    self.add(Kind::ResourceClaim, made.field("resourceClaimName").str());
                }
            }
        }
        let extended = status.field("extendedResourceClaimStatus").field("resourceClaimName").str();
        self.add(Kind::ResourceClaim, extended);
    }
}

fn volume(volume: &Object) -> Option<Fact> {
    let claim = volume.at(&["spec", "claimRef"]);
    if !claim.is_present() {
        return None;
    }
    let namespace = claim.field("namespace").str();
    let by = Vertex::new(Kind::Claim, namespace, claim.field("name").str());
    let mut secrets = BTreeSet::new();
    let spec = volume.at(&["spec"]);
    let mut add = |own: &str, default: &str, name: &str| {
        if !name.is_empty() {
            secrets.insert(Vertex::new(Kind::Secret, if own.is_empty() { default } else { own }, name));
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
    Some(Fact::Claimed { by, secrets: secrets.into_iter().collect() })
}
