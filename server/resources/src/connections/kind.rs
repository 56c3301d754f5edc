//! The subresources that connect.

/// A subresource that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What a container wrote.
    Log,
    /// A command in a container.
    Exec,
    /// A container's own streams.
    Attach,
    /// Ports of a pod.
    Ports,
    /// HTTP to a pod.
    Pod,
    /// HTTP to one of the pods behind a Service.
    Service,
    /// HTTP to a node: to its kubelet, mostly.
    Node,
}

impl Kind {
    /// Whether a GET of it does what a `create` does: it changes the protocol.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, Self::Exec | Self::Attach | Self::Ports)
    }
}
