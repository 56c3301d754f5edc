//! Targets of connect subresources (`log`, `exec`, `proxy`, ...): the control service selects them, and a facade dials them.
//!
//! Contains data types only, independent of how connections are made and of authorization.

use std::fmt;

use bytes::Bytes;

use crate::route::Target;

/// Addresses to dial, and the protocol to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DialTarget {
    /// Equivalent addresses; any of them can be dialed.
    pub targets: Vec<Target>,
    /// TLS settings of the connection.
    pub security: Security,
    /// Request path, unescaped; empty if the request has no path below the subresource.
    pub path: String,
    /// Request query, escaped as in a URL.
    pub query: String,
    /// Type of the exchange.
    pub kind: ConnectKind,
    /// True if a host name may only resolve to addresses that [`portico_gostd::netip::is_global_unicast`] accepts.
    pub global_unicast: bool,
    /// Handling of WebSockets.
    pub web_sockets: WebSocketMode,
}

/// TLS settings of a connection to a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Security {
    /// No TLS.
    #[default]
    Plain,
    /// TLS with the kubelet client certificate. `verify` checks the server certificate against the kubelets' CA, if there is
    /// one; a log request can disable the check.
    Kubelet {
        /// True if the server certificate is checked.
        verify: bool,
    },
    /// TLS without checking the server certificate, and without a client certificate: pods and Services are dialed by address.
    Unverified,
    /// TLS with a server certificate checked against these roots, and without a client certificate.
    Verified {
        /// PEM; empty selects the system's roots.
        roots: Bytes,
        /// Name that the server certificate must have.
        server_name: String,
    },
}

/// Type of the exchange after a connection is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConnectKind {
    /// Any request, which is proxied; links in the response are rewritten to lead through the proxy.
    #[default]
    Proxy,
    /// GET request of the facade with a text response.
    Log,
    /// Request that must upgrade the protocol.
    Upgrade,
}

/// Handling of WebSockets whose subprotocol not every target supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WebSocketMode {
    /// Passed through like any upgrade.
    #[default]
    PassThrough,
    /// Passed through, because the target has declared support for these subprotocols.
    SupportedByTarget,
    /// Messages of numbered channels (`v5.channel.k8s.io`) are translated to frames of these SPDY streams.
    ChannelsToStreams(Streams),
    /// SPDY is tunneled in WebSocket messages (`SPDY/3.1+<protocol>.k8s.io`).
    SpdyTunnel,
}

/// Streams of a command that a client requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Streams {
    /// True if the client sends stdin.
    pub stdin: bool,
    /// True if the client receives stdout.
    pub stdout: bool,
    /// True if the client receives stderr.
    pub stderr: bool,
    /// True if there is a terminal, which has a size and no separate stderr.
    pub tty: bool,
}

/// Target in the path of a proxy request: `name`, `name:port` or `scheme:name:port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyName<'a> {
    /// `http`, `https`, or empty.
    pub scheme: &'a str,
    /// Name of the target; never empty.
    pub name: &'a str,
    /// Port number or name; empty if absent.
    pub port: &'a str,
}

impl<'a> ProxyName<'a> {
    /// Parses a target. Returns `None` for more parts, another scheme or an empty name.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let is_valid = !name.is_empty() && matches!(scheme, "" | "http" | "https");
        is_valid.then_some(Self { scheme, name, port })
    }

    /// Returns the TLS settings of the scheme: unverified TLS for `https`, otherwise no TLS.
    #[must_use]
    pub fn security(&self) -> Security {
        if self.scheme == "https" { Security::Unverified } else { Security::Plain }
    }

    /// Returns the default port of the scheme.
    #[must_use]
    pub fn default_port(&self) -> u16 {
        if self.scheme == "https" { 443 } else { 80 }
    }
}

impl fmt::Display for ProxyName<'_> {
    /// Formats the target as it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, name, port } = self;
        match (scheme.is_empty(), port.is_empty()) {
            (false, _) => write!(f, "{scheme}:{name}:{port}"),
            (true, false) => write!(f, "{name}:{port}"),
            (true, true) => f.write_str(name),
        }
    }
}

/// Removes `.`, `..` and duplicate slashes from a path below a proxy, and keeps a trailing slash. The result cannot leave
/// the proxy.
#[must_use]
pub fn clean_path(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let end = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_names_have_up_to_three_parts() {
        let parse = |text| ProxyName::parse(text).map(|n| (n.scheme, n.name, n.port));
        for (text, want) in [
            ("p", Some(("", "p", ""))),
            ("p:80", Some(("", "p", "80"))),
            ("https:p:", Some(("https", "p", ""))),
            ("http:p:web", Some(("http", "p", "web"))),
            ("ftp:p2:80", None),
            (":80", None),
            ("", None),
            ("a:b:c:d", None),
        ] {
            assert_eq!(parse(text), want, "{text}");
        }
        for text in ["p", "p:80", "https:p:", "http:p:web"] {
            assert_eq!(ProxyName::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn paths_are_cleaned_and_keep_their_last_slash() {
        for (path, want) in [
            ("", ""),
            ("/", "/"),
            ("//", "/"),
            ("/a", "/a"),
            ("/a/", "/a/"),
            ("/a//b/./c/", "/a/b/c/"),
            ("/a/../../../b", "/b"),
            ("/..", "/"),
            ("/../", "/"),
        ] {
            assert_eq!(clean_path(path), want, "{path}");
        }
    }
}
