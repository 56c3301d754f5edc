//! Selection of the translation of a WebSocket: upstream's `NewTranslatingHandler` with its two predicates.

use http::header::{
    HeaderMap, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
};
use http::request::Parts;
use http::{HeaderValue, Method};
use portico_machinery::RequestInfo;
use portico_machinery::connect::{DialTarget, Streams, WebSocketMode};

use crate::Proxy;
use crate::metrics::Handling;
use crate::upgrade::STREAM_PROTOCOL;
use crate::web_socket::protocols;

/// The only channel protocol that is translated: every kubelet supports the older ones.
pub(super) const CHANNEL_PROTOCOL: &str = "v5.channel.k8s.io";
/// Prefix of the names of protocols whose SPDY frames are carried in WebSocket messages.
pub(super) const TUNNEL_PREFIX: &str = "SPDY/3.1+";
/// Suffix of the names of such protocols.
const TUNNEL_SUFFIX: &str = ".k8s.io";

/// Translation of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// The upgrade is passed on unchanged.
    None,
    /// Channels are translated to these SPDY streams.
    Channels(Streams),
    /// SPDY is extracted from messages; the kubelet is offered these protocols.
    Tunnel(Vec<HeaderValue>),
}

impl Translation {
    /// Selects the translation for an upgrade to this protocol.
    pub(super) fn select(dial: &DialTarget, protocol: &HeaderValue, headers: &HeaderMap) -> Self {
        if !protocol.as_bytes().eq_ignore_ascii_case(b"websocket") {
            return Self::None;
        }
        match dial.web_sockets {
            WebSocketMode::PassThrough | WebSocketMode::SupportedByTarget => Self::None,
            WebSocketMode::ChannelsToStreams(streams) => {
                match protocols(headers).any(|p| p == CHANNEL_PROTOCOL.as_bytes()) {
                    true => Self::Channels(streams),
                    false => Self::None,
                }
            }
            WebSocketMode::SpdyTunnel => {
                let spdy = protocols(headers).filter(|protocol| protocol.ends_with(TUNNEL_SUFFIX.as_bytes()));
                let spdy: Vec<_> = spdy
                    .filter_map(|protocol| protocol.strip_prefix(TUNNEL_PREFIX.as_bytes()))
                    .filter_map(|protocol| HeaderValue::from_bytes(protocol).ok())
                    .collect();
                if spdy.is_empty() { Self::None } else { Self::Tunnel(spdy) }
            }
        }
    }
}

/// Converts a request for a WebSocket to a request for SPDY.
pub(super) fn spdy_request(parts: &mut Parts, protocols: Vec<HeaderValue>) {
    parts.method = Method::POST;
    for name in [SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, SEC_WEBSOCKET_EXTENSIONS] {
        parts.headers.remove(name);
    }
    parts.headers.remove(STREAM_PROTOCOL);
    for protocol in protocols {
        parts.headers.append(STREAM_PROTOCOL, protocol);
    }
}

impl Proxy {
    /// Counts a request whose WebSocket the proxy translates or the kubelet serves. Upstream counts after it has selected the
    /// handler and before it reads the request, so requests for SPDY are counted as well.
    pub(super) fn count_web_socket(&self, dial: &DialTarget, info: &RequestInfo) {
        let handling = match dial.web_sockets {
            WebSocketMode::PassThrough => return,
            WebSocketMode::SupportedByTarget => Handling::ByKubelet,
            WebSocketMode::ChannelsToStreams(_) | WebSocketMode::SpdyTunnel => Handling::ByProxy,
        };
        self.shared.metrics.record_web_socket(&info.subresource, handling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation(web_sockets: WebSocketMode, protocol: &'static str, offered: &'static str) -> Translation {
        let dial = DialTarget { web_sockets, ..DialTarget::default() };
        let mut headers = HeaderMap::new();
        headers.insert("sec-websocket-protocol", HeaderValue::from_static(offered));
        Translation::select(&dial, &HeaderValue::from_static(protocol), &headers)
    }

    #[test]
    fn only_protocols_unknown_to_older_kubelets_are_translated() {
        let streams = Streams { stdout: true, ..Streams::default() };
        let channels = WebSocketMode::ChannelsToStreams(streams);
        let tunnel = Translation::Tunnel(vec![HeaderValue::from_static("portforward.k8s.io")]);
        for (web_sockets, protocol, offered, want) in [
            (channels, "WebSocket", "v5.channel.k8s.io", Translation::Channels(streams)),
            (channels, "websocket", "v4.channel.k8s.io, v5.channel.k8s.io", Translation::Channels(streams)),
            (channels, "websocket", "v4.channel.k8s.io", Translation::None),
            (channels, "SPDY/3.1", "v5.channel.k8s.io", Translation::None),
            (WebSocketMode::SupportedByTarget, "websocket", "v5.channel.k8s.io", Translation::None),
            (WebSocketMode::PassThrough, "websocket", "v5.channel.k8s.io", Translation::None),
            (WebSocketMode::SpdyTunnel, "websocket", "SPDY/3.1+portforward.k8s.io", tunnel),
            (WebSocketMode::SpdyTunnel, "websocket", "v4.channel.k8s.io", Translation::None),
            (WebSocketMode::SpdyTunnel, "websocket", "SPDY/3.1+other", Translation::None),
        ] {
            assert_eq!(translation(web_sockets, protocol, offered), want, "{web_sockets:?} {offered}");
        }
    }
}
