//! Conversion of dial targets.

use portico_machinery::connect::{ConnectKind, DialTarget, Security, Streams, WebSocketMode};
use portico_machinery::route::Target;

use crate::objects as pb;

impl From<DialTarget> for pb::Dial {
    fn from(dial: DialTarget) -> Self {
        let DialTarget { targets, security, path, query, kind, global_unicast, web_sockets } = dial;
        let (security, roots, server_name) = match security {
            Security::Plain => (pb::Security::Plain, bytes::Bytes::new(), String::new()),
            Security::Kubelet { verify: true } => (pb::Security::Kubelet, bytes::Bytes::new(), String::new()),
            Security::Kubelet { verify: false } => {
                (pb::Security::KubeletUnverified, bytes::Bytes::new(), String::new())
            }
            Security::Unverified => (pb::Security::Unverified, bytes::Bytes::new(), String::new()),
            Security::Verified { roots, server_name } => (pb::Security::Verified, roots, server_name),
        };
        let kind = match kind {
            ConnectKind::Proxy => pb::ConnectKind::Proxy,
            ConnectKind::Log => pb::ConnectKind::Log,
            ConnectKind::Upgrade => pb::ConnectKind::Upgrade,
        };
        let (web_sockets, streams) = web_sockets_to_proto(web_sockets);
        let address = |target: Target| pb::Address { host: target.host, port: target.port.into() };
        Self {
            addresses: targets.into_iter().map(address).collect(),
            security: security.into(),
            roots,
            server_name,
            path,
            query,
            kind: kind.into(),
            global_unicast,
            web_sockets: web_sockets.into(),
            streams,
        }
    }
}

fn web_sockets_to_proto(web_sockets: WebSocketMode) -> (pb::WebSockets, Option<pb::Streams>) {
    match web_sockets {
        WebSocketMode::PassThrough => (pb::WebSockets::Unspecified, None),
        WebSocketMode::SupportedByTarget => (pb::WebSockets::SpokenByTarget, None),
        WebSocketMode::ChannelsToStreams(Streams { stdin, stdout, stderr, tty }) => {
            (pb::WebSockets::ChannelsToStreams, Some(pb::Streams { stdin, stdout, stderr, tty }))
        }
        WebSocketMode::SpdyTunnel => (pb::WebSockets::SpdyInMessages, None),
    }
}

/// Converts the WebSocket handling. Values unknown to this build become `PassThrough`, so that the target handles the request.
fn web_sockets_from_proto(dial: &pb::Dial) -> WebSocketMode {
    match dial.web_sockets() {
        pb::WebSockets::Unspecified => WebSocketMode::PassThrough,
        pb::WebSockets::SpokenByTarget => WebSocketMode::SupportedByTarget,
        pb::WebSockets::ChannelsToStreams => {
            let pb::Streams { stdin, stdout, stderr, tty } = dial.streams.unwrap_or_default();
            WebSocketMode::ChannelsToStreams(Streams { stdin, stdout, stderr, tty })
        }
        pb::WebSockets::SpdyInMessages => WebSocketMode::SpdyTunnel,
    }
}

/// Error of a dial message that is incomplete or contains values unknown to this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported dial target from the control service: {0}")]
pub struct InvalidDial(&'static str);

impl TryFrom<pb::Dial> for DialTarget {
    type Error = InvalidDial;

    fn try_from(dial: pb::Dial) -> Result<Self, InvalidDial> {
        let security = match dial.security() {
            pb::Security::Unspecified => return Err(InvalidDial("security")),
            pb::Security::Plain => Security::Plain,
            pb::Security::Kubelet => Security::Kubelet { verify: true },
            pb::Security::KubeletUnverified => Security::Kubelet { verify: false },
            pb::Security::Unverified => Security::Unverified,
            pb::Security::Verified => {
                Security::Verified { roots: dial.roots.clone(), server_name: dial.server_name.clone() }
            }
        };
        let kind = match dial.kind() {
            pb::ConnectKind::Unspecified => return Err(InvalidDial("kind")),
            pb::ConnectKind::Proxy => ConnectKind::Proxy,
            pb::ConnectKind::Log => ConnectKind::Log,
            pb::ConnectKind::Upgrade => ConnectKind::Upgrade,
        };
        let web_sockets = web_sockets_from_proto(&dial);
        let target = |address: pb::Address| match u16::try_from(address.port) {
            Ok(port) if port > 0 && !address.host.is_empty() => Ok(Target { host: address.host, port }),
            _ => Err(InvalidDial("address")),
        };
        let targets = dial.addresses.into_iter().map(target).collect::<Result<Vec<_>, _>>()?;
        if targets.is_empty() {
            return Err(InvalidDial("address"));
        }
        let (path, query, global_unicast) = (dial.path, dial.query, dial.global_unicast);
        Ok(Self { targets, security, path, query, kind, global_unicast, web_sockets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dial_target_round_trips_and_incomplete_ones_are_refused() {
        let whole = DialTarget {
            targets: vec![Target { host: "10.0.0.1".to_owned(), port: 10250 }],
            security: Security::Plain,
            path: "/a b/".to_owned(),
            query: "x=1".to_owned(),
            kind: ConnectKind::Log,
            global_unicast: true,
            web_sockets: WebSocketMode::PassThrough,
        };
        let verified = Security::Verified { roots: "pem".into(), server_name: "x".to_owned() };
        for security in [
            Security::Plain,
            Security::Kubelet { verify: true },
            Security::Kubelet { verify: false },
            Security::Unverified,
            verified,
        ] {
            for kind in [ConnectKind::Proxy, ConnectKind::Log, ConnectKind::Upgrade] {
                let dial = DialTarget { security: security.clone(), kind, ..whole.clone() };
                assert_eq!(DialTarget::try_from(pb::Dial::from(dial.clone())), Ok(dial));
            }
        }
        let streams = Streams { stdin: true, stdout: false, stderr: true, tty: false };
        for web_sockets in [
            WebSocketMode::SupportedByTarget,
            WebSocketMode::ChannelsToStreams(streams),
            WebSocketMode::SpdyTunnel,
        ] {
            let dial = DialTarget { web_sockets, ..whole.clone() };
            assert_eq!(DialTarget::try_from(pb::Dial::from(dial.clone())), Ok(dial));
        }
        let newer = pb::Dial { web_sockets: 99, ..whole.clone().into() };
        assert_eq!(DialTarget::try_from(newer), Ok(whole.clone()), "unknown modes are passed through");
        assert!(DialTarget::try_from(pb::Dial::default()).is_err());
        let nowhere = DialTarget { targets: Vec::new(), ..whole };
        assert_eq!(DialTarget::try_from(pb::Dial::from(nowhere)), Err(InvalidDial("address")));
    }
}
