//! Kinds of connection subresources.

/// Kind of a connection subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Output of a container.
    Log,
    /// Runs a command in a container.
    Exec,
    /// Attaches to the streams of a container.
    Attach,
    /// Forwards ports of a pod.
    Ports,
    /// HTTP proxy to a pod.
    Pod,
    /// HTTP proxy to one of the pods behind a Service.
    Service,
    /// HTTP proxy to a node, usually to its kubelet.
    Node,
}

impl Kind {
    /// True if the connection changes the protocol, so that a GET request has the effect of a `create`.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, Self::Exec | Self::Attach | Self::Ports)
    }
}
