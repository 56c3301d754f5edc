//! Kinds of connection subresources.

/// Kind of a connection subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// Output of a container.
    Log,
    /// Runs a command in a container.
    Exec,
    /// Attaches to the streams of a container.
    Attach,
    /// Forwards ports of a pod.
    PortForward,
    /// HTTP proxy to a pod.
    PodProxy,
    /// HTTP proxy to one of the pods behind a Service.
    ServiceProxy,
    /// HTTP proxy to a node, usually to its kubelet.
    NodeProxy,
}

impl ConnectionKind {
    /// True if the connection changes the protocol, so that a GET request has the effect of a `create`.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, Self::Exec | Self::Attach | Self::PortForward)
    }
}
