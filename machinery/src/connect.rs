//! Where a connecting subresource (`log`, `exec`, `proxy`, ...) leads: what the control service decides and a facade dials.
//!
//! Pure words. It must not know how a connection is made, nor why somebody may have it.

use std::fmt;

use bytes::Bytes;

use crate::route::Target;

/// Where to dial, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dial {
    /// Any of them will do.
    pub targets: Vec<Target>,
    /// How the target is spoken to.
    pub security: Security,
    /// The path to ask for, not escaped; empty when the request names none below the subresource.
    pub path: String,
    /// The query to ask with, as it stands in a URL.
    pub query: String,
    /// What kind of exchange it is.
    pub kind: ConnectKind,
    /// Whether a target that is a name may only lead to addresses that [`portico_gostd::netip::is_global_unicast`] accepts.
    pub global_unicast: bool,
    /// What becomes of WebSockets.
    pub web_sockets: WebSockets,
}

/// How a target is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Security {
    /// Without TLS.
    #[default]
    Plain,
    /// TLS as a kubelet wants it: with the kubelet client certificate. `verify` checks against the kubelets' CA, where
    /// there is one; who asks for a log may renounce that.
    Kubelet {
        /// Whether the certificate is checked.
        verify: bool,
    },
    /// TLS with whoever answers, and no client certificate: pods and Services are dialed by address.
    Unverified,
    /// TLS checked against these roots, and no client certificate.
    Verified {
        /// PEM; empty means the system's roots.
        roots: Bytes,
        /// The name that the certificate must carry.
        server_name: String,
    },
}

/// What kind of exchange follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConnectKind {
    /// Any request, handed on; links in the answer are led back through the proxy.
    #[default]
    Proxy,
    /// A GET of our own whose answer is text.
    Log,
    /// A request that changes the protocol, and nothing else.
    Upgrade,
}

/// What becomes of a WebSocket that a client asks for in a protocol that not every target speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WebSockets {
    /// It is handed on, like any upgrade.
    #[default]
    HandedOn,
    /// It is handed on because the target has declared that it speaks these protocols.
    SpokenByTarget,
    /// Messages of numbered channels (`v5.channel.k8s.io`) become frames of these SPDY streams.
    ChannelsToStreams(Streams),
    /// SPDY is taken out of messages (`SPDY/3.1+<protocol>.k8s.io`) and put into them.
    SpdyInMessages,
}

/// The streams of a command that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Streams {
    /// Whether the client sends input.
    pub stdin: bool,
    /// Whether the client wants output.
    pub stdout: bool,
    /// Whether the client wants errors.
    pub stderr: bool,
    /// Whether there is a terminal: it has sizes, and no errors apart from its output.
    pub tty: bool,
}

/// `name`, `name:port` or `scheme:name:port`: how the path of a proxy names what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyName<'a> {
    /// `http`, `https`, or empty.
    pub scheme: &'a str,
    /// Never empty.
    pub name: &'a str,
    /// A number or a name; empty when none is given.
    pub port: &'a str,
}

impl<'a> ProxyName<'a> {
    /// Nothing for more parts, another scheme or no name.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let known = !name.is_empty() && matches!(scheme, "" | "http" | "https");
        known.then_some(Self { scheme, name, port })
    }

    /// TLS without looking who answers, or none: what the scheme says; none says http.
    #[must_use]
    pub fn security(&self) -> Security {
        if self.scheme == "https" { Security::Unverified } else { Security::Plain }
    }

    /// The scheme's usual port.
    #[must_use]
    pub fn default_port(&self) -> u16 {
        if self.scheme == "https" { 443 } else { 80 }
    }
}

impl fmt::Display for ProxyName<'_> {
    /// As it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, name, port } = self;
        match (scheme.is_empty(), port.is_empty()) {
            (false, _) => write!(f, "{scheme}:{name}:{port}"),
            (true, false) => write!(f, "{name}:{port}"),
            (true, true) => f.write_str(name),
        }
    }
}

/// The path below a proxy, without `.`, `..` and doubled slashes; a slash at the end stays. It cannot climb out.
#[must_use]
pub fn clean_path(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_proxies_have_up_to_three_parts() {
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
