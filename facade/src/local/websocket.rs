//! Watches over WebSocket: one message per event, text for JSON and binary for protobuf, for all subprotocols.
//!
//! Upstream's rules: a watch that cannot start is refused over HTTP; a handshake needs an `Origin`, version 13 and at most one
//! subprotocol in addition to the one that contains a token; a watch that ends is closed with 1000; messages of the client are
//! ignored, except a close.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, Stream, StreamExt};
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{StatusCode, Uri};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use portico_kit::header_text::{first, tokens};
use portico_kit::tasks::TaskSet;
use portico_proxy::Tunnel;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::body::Body;
use crate::request::{RequestView, Response};

/// Only supported version of the protocol.
const VERSION: &str = "13";
/// Bearer token passed as a WebSocket subprotocol, which is never selected.
const BEARER: &[u8] = b"base64url.bearer.authorization.k8s.io.";
/// Length prefix of protobuf events over HTTP, in bytes.
const LENGTH_BYTES: usize = 4;
/// Size of a message from a client on the WebSocket of a watch; the content is ignored.
///
/// Limit (Serving, bytes): the connection is closed.
const MAX_RECEIVED: usize = 64 * 1024;

/// Refusal of a handshake, with upstream's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    NoKey,
    Version,
    Origin,
    Protocols,
}

impl Refusal {
    fn response(self) -> Response {
        let (code, text) = match self {
            Self::NoKey => (StatusCode::BAD_REQUEST, "mismatch challenge/response"),
            Self::Version => (StatusCode::BAD_REQUEST, "missing or bad WebSocket Version"),
            Self::Origin => (StatusCode::FORBIDDEN, ""),
            Self::Protocols => (StatusCode::BAD_REQUEST, ""),
        };
        let mut response = Response::new(Body::full(text));
        *response.status_mut() = code;
        if self == Self::Version {
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        }
        response
    }
}

/// True if the request is a WebSocket handshake.
pub(super) fn is_requested(headers: &HeaderMap) -> bool {
    let has_token = |name, word| tokens(headers, name).any(|token| token.eq_ignore_ascii_case(word));
    has_token(CONNECTION, b"upgrade") && has_token(UPGRADE, b"websocket")
}

/// Answers the handshake, and sends the events in a separate task once the connection is upgraded. The watch ends if the
/// client has stalled for `stalled`.
pub(super) fn serve<S>(
    request: &Parts,
    media_type: &str,
    events: S,
    tasks: &TaskSet,
    stalled: Duration,
) -> Response
where
    S: Stream<Item = Bytes> + Send + Unpin + 'static,
{
    let mut response = match accept_handshake(&request.headers) {
        Ok(response) => response,
        Err(refusal) => return refusal.response(),
    };
    // HTTP/2 has no upgrades, and the headers have no meaning there.
    let Some(upgrade) = request.extension::<OnUpgrade>().cloned() else {
        return Refusal::NoKey.response();
    };
    let as_text = media_type.starts_with("application/json");
    let opened = Tunnel::default();
    response.extensions_mut().insert(opened.clone());
    tasks.spawn_until_cancelled("watch-websocket", async move {
        let _opened = opened;
        if let Err(error) = send(upgrade, events, as_text, stalled).await {
            tracing::debug!(%error, "watch over WebSocket failed");
        }
    });
    response
}

/// Returns the 101 response, or the refusal.
fn accept_handshake(headers: &HeaderMap) -> Result<Response, Refusal> {
    let key = first(headers, SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err(Refusal::NoKey);
    }
    if first(headers, SEC_WEBSOCKET_VERSION) != VERSION {
        return Err(Refusal::Version);
    }
    if !is_origin(first(headers, ORIGIN)) {
        return Err(Refusal::Origin);
    }
    let protocols = tokens(headers, SEC_WEBSOCKET_PROTOCOL);
    let mut protocols = protocols.filter(|protocol| !protocol.starts_with(BEARER));
    let protocol = protocols.next();
    if protocols.next().is_some() {
        return Err(Refusal::Protocols);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| Refusal::NoKey)?;
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::from_bytes(protocol).map_err(|_| Refusal::Protocols)?;
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

/// True for an absolute URI, or a path, as upstream parses it.
fn is_origin(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() || text.starts_with('/'))
}

#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("cannot upgrade the connection: {0}")]
    Upgrade(#[from] hyper::Error),
    #[error(transparent)]
    WebSocket(#[from] tokio_tungstenite::tungstenite::Error),
    #[error("the client does not read the response")]
    Stalled(#[from] tokio::time::error::Elapsed),
}

async fn send<S>(upgrade: OnUpgrade, mut events: S, as_text: bool, stalled: Duration) -> Result<(), SendError>
where
    S: Stream<Item = Bytes> + Unpin,
{
    let io = TokioIo::new(upgrade.await?);
    let config =
        WebSocketConfig::default().max_message_size(Some(MAX_RECEIVED)).max_frame_size(Some(MAX_RECEIVED));
    let (mut to_client, mut from_client) =
        WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await.split();
    // Reading also answers pings; it ends when the client closes or disconnects.
    let mut disconnected = std::pin::pin!(async move { while let Some(Ok(_)) = from_client.next().await {} });
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = &mut disconnected => return Ok(()),
        };
        let Some(event) = event else { break };
        timeout(stalled, to_client.send(message(event, as_text))).await??;
    }
    let close = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
    timeout(stalled, to_client.send(Message::Close(Some(close)))).await??;
    Ok(())
}

/// Converts an event to a message: JSON with its newline, protobuf without its length prefix.
fn message(event: Bytes, as_text: bool) -> Message {
    if as_text && let Ok(text) = Utf8Bytes::try_from(event.clone()) {
        return Message::Text(text);
    }
    Message::Binary(event.slice(LENGTH_BYTES.min(event.len())..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(changes: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let usual = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("origin", "http://localhost"),
        ];
        for (name, value) in usual.iter().chain(changes) {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_handshake_is_answered_as_in_the_example_of_the_standard() {
        let response = accept_handshake(&headers(&[])).unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!response.headers().contains_key("sec-websocket-protocol"));
    }

    #[test]
    fn handshakes_are_refused_as_upstream_refuses_them() {
        let bearer = "base64url.bearer.authorization.k8s.io.eA, binary.k8s.io";
        let rows: [(&str, &str, Result<(), Refusal>); 9] = [
            ("sec-websocket-key", "", Err(Refusal::NoKey)),
            ("sec-websocket-version", "12", Err(Refusal::Version)),
            ("origin", "", Err(Refusal::Origin)),
            ("origin", "nonsense", Err(Refusal::Origin)),
            ("origin", "https://example.com:8443", Ok(())),
            ("sec-websocket-protocol", "a, b", Err(Refusal::Protocols)),
            ("sec-websocket-protocol", "base64.binary.k8s.io", Ok(())),
            ("sec-websocket-protocol", bearer, Ok(())),
            ("x-other", "x", Ok(())),
        ];
        for (name, value, want) in rows {
            assert_eq!(accept_handshake(&headers(&[(name, value)])).map(drop), want, "{name}: {value}");
        }
        let response = accept_handshake(&headers(&[("sec-websocket-protocol", bearer)])).unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], "binary.k8s.io");
    }

    #[test]
    fn only_an_upgrade_to_websocket_is_one() {
        assert!(is_requested(&headers(&[])));
        assert!(!is_requested(&headers(&[("upgrade", "SPDY/3.1")])));
        assert!(!is_requested(&headers(&[("connection", "keep-alive")])));
    }

    #[test]
    fn an_event_is_a_line_of_text_or_bytes_without_their_length() {
        let json = Bytes::from_static(b"{}\n");
        assert_eq!(message(json, true), Message::Text(Utf8Bytes::from_static("{}\n")));
        let protobuf = Bytes::from_static(&[0, 0, 0, 1, 7]);
        assert_eq!(message(protobuf, false), Message::Binary(Bytes::from_static(&[7])));
    }
}
