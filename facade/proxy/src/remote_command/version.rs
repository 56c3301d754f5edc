//! Versions of the protocol between client and kubelet for a command's streams.

/// Versions offered to a kubelet, in order of preference. Upstream also offers `channel.k8s.io`, which
/// no kubelet since 1.0 needs.
pub(crate) const OFFERED: [&str; 4] =
    ["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"];

/// Features of the version that the kubelet selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// True if a terminal has a stream for its size: v3 and later.
    pub(crate) has_resize_stream: bool,
    /// True if the error stream always carries a Status: v4 and later. In earlier versions it carries text if the command failed.
    pub(crate) sends_status: bool,
}

impl Version {
    /// Returns the version that the kubelet selected from [`OFFERED`].
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let (has_resize_stream, sends_status) = match name {
            "v5.channel.k8s.io" | "v4.channel.k8s.io" => (true, true),
            "v3.channel.k8s.io" => (true, false),
            "v2.channel.k8s.io" => (false, false),
            _ => return None,
        };
        Some(Self { has_resize_stream, sends_status })
    }
}
