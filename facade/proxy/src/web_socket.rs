//! Server side of a WebSocket, for connections that are translated before they are forwarded.
//!
//! The rules are those of `golang.org/x/net/websocket`, on which upstream's `wsstream` is built. `Origin` is not required:
//! callers are not authenticated by cookies.

use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Method, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use portico_kit::header_text::tokens;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::body::ProxyBody;

/// The only supported version of the protocol.
const VERSION: &str = "13";
/// Size of the read buffer in bytes.
const READ_BUFFER: usize = 8 * 1024;

/// A client's connection after the handshake.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A valid handshake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    accept: HeaderValue,
}

/// Reason for which a handshake is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeRefusal {
    Method,
    NoKey,
    Version,
}

impl Handshake {
    pub(crate) fn read(method: &Method, headers: &HeaderMap) -> Result<Self, HandshakeRefusal> {
        if method != Method::GET {
            return Err(HandshakeRefusal::Method);
        }
        let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
        let key = key.ok_or(HandshakeRefusal::NoKey)?;
        if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != VERSION) {
            return Err(HandshakeRefusal::Version);
        }
        let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
        Ok(Self { accept: accept.map_err(|_| HandshakeRefusal::NoKey)? })
    }

    /// Returns the 101 response, with the agreed protocol.
    pub(crate) fn response(self, protocol: Option<HeaderValue>) -> Response<ProxyBody> {
        let mut response = Response::new(ProxyBody::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

impl HandshakeRefusal {
    pub(crate) fn response(self) -> Response<ProxyBody> {
        let (code, text) = match self {
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "bad method"),
            Self::NoKey => (StatusCode::BAD_REQUEST, "mismatch challenge/response"),
            Self::Version => (StatusCode::BAD_REQUEST, "missing or bad WebSocket Version"),
        };
        let mut response = Response::new(ProxyBody::full(text));
        *response.status_mut() = code;
        if self == Self::Version {
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        }
        response
    }
}

/// The protocols that a client offers, in its order.
pub(crate) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    tokens(headers, SEC_WEBSOCKET_PROTOCOL)
}

/// Returns the client's connection after the 101 was sent; a message of more than `max_message` bytes ends it.
pub(crate) async fn open(client: OnUpgrade, max_message: usize) -> Result<Socket, hyper::Error> {
    let io = TokioIo::new(client.await?);
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(max_message))
        .max_frame_size(Some(max_message));
    Ok(WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await)
}

/// Close frame of a normal end.
pub(crate) fn normal_closure() -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(changes: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let usual = [
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "v5.channel.k8s.io, v4.channel.k8s.io"),
        ];
        for (name, value) in usual.iter().chain(changes) {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn handshake_of_the_standards_example() {
        let headers = headers(&[]);
        let handshake = Handshake::read(&Method::GET, &headers).unwrap();
        let response = handshake.response(Some(HeaderValue::from_static("v5.channel.k8s.io")));
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers()["sec-websocket-protocol"], "v5.channel.k8s.io");
        assert_eq!(
            protocols(&headers).collect::<Vec<_>>(),
            [&b"v5.channel.k8s.io"[..], b"v4.channel.k8s.io"]
        );
    }

    #[test]
    fn handshakes_are_refused_like_upstream() {
        let read = |method, changes: &[_]| Handshake::read(&method, &headers(changes)).map(drop);
        assert_eq!(read(Method::POST, &[]), Err(HandshakeRefusal::Method));
        assert_eq!(read(Method::GET, &[("sec-websocket-key", "")]), Err(HandshakeRefusal::NoKey));
        assert_eq!(read(Method::GET, &[("sec-websocket-version", "8")]), Err(HandshakeRefusal::Version));
        let response = HandshakeRefusal::Version.response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["sec-websocket-version"]),
            (400, &HeaderValue::from_static("13"))
        );
    }
}
