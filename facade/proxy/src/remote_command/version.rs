//! The versions of the protocol between client and kubelet for a command's streams.

/// What is offered to a kubelet, best first. Upstream also offers `channel.k8s.io`, which no kubelet since 1.0 needs.
pub(crate) const OFFERED: [&str; 4] =
    ["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"];

/// How the kubelet speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// Terminals have a stream for their size: from v3 on.
    pub(crate) resizes: bool,
    /// The error stream carries a Status, always: from v4 on. Before, it carries text when something went wrong.
    pub(crate) says_status: bool,
}

impl Version {
    /// The one that the kubelet chose of those that are [`OFFERED`].
    pub(crate) fn chosen(name: &str) -> Option<Self> {
        let (resizes, says_status) = match name {
            "v5.channel.k8s.io" | "v4.channel.k8s.io" => (true, true),
            "v3.channel.k8s.io" => (true, false),
            "v2.channel.k8s.io" => (false, false),
            _ => return None,
        };
        Some(Self { resizes, says_status })
    }
}
