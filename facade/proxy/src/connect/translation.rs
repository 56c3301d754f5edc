//! Selection of the translation of a WebSocket: upstream's `NewTranslatingHandler` with its two predicates.

use http::header::{
    HeaderMap, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
};
use http::request::Parts;
use http::{HeaderValue, Method};
use portico_machinery::RequestInfo;
use portico_machinery::connect::{Dial, Streams, WebSockets};

use crate::Proxy;
use crate::metrics::Handling;
use crate::upgrade::STREAM_PROTOCOL;
use crate::web_socket::protocols;

/// The only channel protocol that is translated: every kubelet supports the older ones.
pub(super) const CHANNELS: &str = "v5.channel.k8s.io";
/// Prefix of the names of protocols whose SPDY frames are carried in WebSocket messages.
pub(super) const IN_MESSAGES: &str = "SPDY/3.1+";
/// Suffix of the names of such protocols.
const SUFFIX: &str = ".k8s.io";

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
    pub(super) fn of(dial: &Dial, protocol: &HeaderValue, headers: &HeaderMap) -> Self {
        if !protocol.as_bytes().eq_ignore_ascii_case(b"websocket") {
            return Self::None;
        }
        match dial.web_sockets {
            WebSockets::HandedOn | WebSockets::SpokenByTarget => Self::None,
            WebSockets::ChannelsToStreams(streams) => {
                match protocols(headers).any(|p| p == CHANNELS.as_bytes()) {
                    true => Self::Channels(streams),
                    false => Self::None,
                }
            }
            WebSockets::SpdyInMessages => {
                let spdy = protocols(headers).filter(|protocol| protocol.ends_with(SUFFIX.as_bytes()));
                let spdy: Vec<_> = spdy
                    .filter_map(|protocol| protocol.strip_prefix(IN_MESSAGES.as_bytes()))
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
    pub(super) fn count_web_socket(&self, dial: &Dial, info: &RequestInfo) {
        let handling = match dial.web_sockets {
            WebSockets::HandedOn => return,
            WebSockets::SpokenByTarget => Handling::ByKubelet,
            WebSockets::ChannelsToStreams(_) | WebSockets::SpdyInMessages => Handling::Here,
        };
        self.shared.metrics.web_socket(&info.subresource, handling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation(web_sockets: WebSockets, protocol: &'static str, offered: &'static str) -> Translation {
        let dial = Dial { web_sockets, ..Dial::default() };
        let mut headers = HeaderMap::new();
        headers.insert("sec-websocket-protocol", HeaderValue::from_static(offered));
        Translation::of(&dial, &HeaderValue::from_static(protocol), &headers)
    }

    #[test]
    fn only_the_protocols_that_older_kubelets_do_not_speak_are_translated() {
        let streams = Streams { stdout: true, ..Streams::default() };
        let channels = WebSockets::ChannelsToStreams(streams);
        let tunnel = Translation::Tunnel(vec![HeaderValue::from_static("portforward.k8s.io")]);
        for (web_sockets, protocol, offered, want) in [
            (channels, "WebSocket", "v5.channel.k8s.io", Translation::Channels(streams)),
            (channels, "websocket", "v4.channel.k8s.io, v5.channel.k8s.io", Translation::Channels(streams)),
            (channels, "websocket", "v4.channel.k8s.io", Translation::None),
            (channels, "SPDY/3.1", "v5.channel.k8s.io", Translation::None),
            (WebSockets::SpokenByTarget, "websocket", "v5.channel.k8s.io", Translation::None),
            (WebSockets::HandedOn, "websocket", "v5.channel.k8s.io", Translation::None),
            (WebSockets::SpdyInMessages, "websocket", "SPDY/3.1+portforward.k8s.io", tunnel),
            (WebSockets::SpdyInMessages, "websocket", "v4.channel.k8s.io", Translation::None),
            (WebSockets::SpdyInMessages, "websocket", "SPDY/3.1+other", Translation::None),
        ] {
            assert_eq!(translation(web_sockets, protocol, offered), want, "{web_sockets:?} {offered}");
        }
    }
}
