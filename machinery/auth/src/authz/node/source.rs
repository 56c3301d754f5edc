//! Resources that define edges of the graph, and kinds of its vertices.

use portico_machinery::GroupResource;

/// Resource whose objects define edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeSource {
    /// Pods, with edges to the node and to referenced objects.
    Pods,
    /// Persistent volumes.
    Volumes,
    /// Volume attachments.
    Attachments,
    /// Resource slices.
    Slices,
    /// Pod certificate requests.
    CertificateRequests,
}

impl EdgeSource {
    /// All sources.
    pub const ALL: [Self; 5] =
        [Self::Pods, Self::Volumes, Self::Attachments, Self::Slices, Self::CertificateRequests];

    /// Returns the group and resource.
    #[must_use]
    pub fn resource(self) -> GroupResource {
        let (group, resource) = self.names();
        GroupResource::new(group, resource)
    }

    /// Returns the source for a resource, if any.
    #[must_use]
    pub fn from_resource(resource: &GroupResource) -> Option<Self> {
        let matches_resource =
            |source: &Self| source.names() == (resource.group.as_str(), resource.resource.as_str());
        Self::ALL.into_iter().find(matches_resource)
    }

    pub(super) fn kind(self) -> VertexKind {
        match self {
            Self::Pods => VertexKind::Pod,
            Self::Volumes => VertexKind::Volume,
            Self::Attachments => VertexKind::Attachment,
            Self::Slices => VertexKind::Slice,
            Self::CertificateRequests => VertexKind::CertificateRequest,
        }
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Pods => ("", "pods"),
            Self::Volumes => ("", "persistentvolumes"),
            Self::Attachments => ("storage.k8s.io", "volumeattachments"),
            Self::Slices => ("resource.k8s.io", "resourceslices"),
            Self::CertificateRequests => ("certificates.k8s.io", "podcertificaterequests"),
        }
    }
}

/// Kind of an object in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VertexKind {
    /// Pod
    Pod,
    /// PersistentVolume
    Volume,
    /// VolumeAttachment
    Attachment,
    /// ResourceSlice
    Slice,
    /// PodCertificateRequest
    CertificateRequest,
    /// Secret
    Secret,
    /// ConfigMap
    ConfigMap,
    /// PersistentVolumeClaim
    Claim,
    /// ResourceClaim
    ResourceClaim,
    /// ServiceAccount
    ServiceAccount,
}
