//! Requests that change the protocol (WebSocket, SPDY/3.1): a dedicated connection that carries raw bytes after the handshake.
//!
//! Upstream has had many vulnerabilities in this path. Therefore the response must be a 101 for the requested protocol, any other
//! status below 400 becomes a local 503, an error is forwarded completely and then both connections are closed, and the identity
//! is in the request itself.

use std::num::NonZeroU32;

use http::header::{CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use portico_kit::dial::{http_reason, io_reason};
use portico_kit::header_text::{first, tokens};
use portico_kit::throttled_io::ThrottledIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{Instant, timeout_at};

use crate::body::ProxyBody;
use crate::headers::clean_response;
use crate::outgoing_request::OutgoingRequest;
use crate::refusal::Refusal;
use crate::stage::Stage;
use crate::transport::{Carrier, Http1Error, Http1Response, Permit, ResponseBody, Shared, is_failure};
use crate::tunnel::Tunnel;

/// Maximum bytes of one read from an upgraded connection: a TLS record.
const READ_SIZE: usize = 16 * 1024;

/// Name of SPDY in an upgrade; kubelets and container runtimes multiplex streams with SPDY.
pub(crate) const SPDY: &str = "SPDY/3.1";
/// Header with the protocol within SPDY; in requests, with the offered protocols.
pub(crate) const STREAM_PROTOCOL: &str = "x-stream-protocol-version";

/// Subprotocol by which a WebSocket client sends a bearer token; a credential, which is not forwarded.
const BEARER_PROTOCOL: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// Forwards an upgrade, with at most `rate` bytes a second in each direction. The headers are complete
/// except for those of the upgrade.
pub(crate) async fn upgrade(
    shared: &Shared,
    permit: Permit,
    mut request: OutgoingRequest<'_>,
    client: Option<OnUpgrade>,
    protocol: HeaderValue,
    deadline: Option<Instant>,
    rate: Option<NonZeroU32>,
) -> Result<Response<ProxyBody>, Refusal> {
    let client = client.ok_or_else(|| Refusal::Unreachable {
        stage: Stage::Http,
        message: "the client's connection cannot be upgraded".to_owned(),
    })?;
    let upgrade = request_upgrade(&permit, &mut request, protocol.clone());
    let (answered, authority) = match deadline {
        Some(at) => timeout_at(at, upgrade).await.map_err(|_| Refusal::Deadline { discovery: false })??,
        None => upgrade.await?,
    };
    match answered.1.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            start_tunnel(shared, permit, client, answered, (&protocol, &authority), rate)
        }
        status if status.as_u16() < 400 => Err(Refusal::NotUpgraded(status.as_u16())),
        _ => Ok(refusal_response(shared, permit, answered, &authority)),
    }
}

/// Requests an upgrade to this protocol on a new connection. Also returns the authority of the target.
pub(crate) async fn request_upgrade(
    permit: &Permit,
    request: &mut OutgoingRequest<'_>,
    protocol: HeaderValue,
) -> Result<(Http1Response, HeaderValue), Refusal> {
    request.insert_proxy_headers();
    remove_bearer_protocol(&mut request.headers);
    request.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    request.headers.insert(UPGRADE, protocol);
    let (connection, target) = permit.transport().dedicated_connection().await?;
    match connection.send(request, &target.authority).await {
        Ok(answered) => {
            permit.transport().record_outcome(target, !is_failure(answered.1.status()));
            Ok((answered, target.authority.clone()))
        }
        Err(Http1Error::Unsent(error) | Http1Error::Broken(error)) => {
            permit.transport().record_outcome(target, false);
            Err(error.into())
        }
    }
}

fn start_tunnel(
    shared: &Shared,
    permit: Permit,
    client: OnUpgrade,
    (_connection, mut response): Http1Response,
    (protocol, authority): (&HeaderValue, &HeaderValue),
    rate: Option<NonZeroU32>,
) -> Result<Response<ProxyBody>, Refusal> {
    let backend = hyper::upgrade::on(&mut response);
    let (mut parts, _) = response.into_parts();
    let agreed = parts.headers.get(UPGRADE).cloned();
    let agreed = agreed.filter(|agreed| agreed.as_bytes().eq_ignore_ascii_case(protocol.as_bytes()));
    let Some(agreed) = agreed else { return Err(Refusal::NotUpgraded(101)) };
    clean_response(&mut parts.headers, authority);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    parts.headers.insert(UPGRADE, agreed);
    parts.extensions.clear();
    let opened = Tunnel::default();
    parts.extensions.insert(opened.clone());
    let metrics = shared.metrics.clone();
    shared.tasks.spawn_until_cancelled("proxy-tunnel", async move {
        let _open = (metrics.track_upgrade(), opened);
        if let Err(error) = tunnel(client, backend, rate).await {
            tracing::debug!(%error, "upgraded connection failed");
        }
        drop(permit);
    });
    Ok(Response::from_parts(parts, ProxyBody::empty()))
}

#[derive(Debug, thiserror::Error)]
enum TunnelError {
    #[error("cannot upgrade the client connection: {}", http_reason(.0))]
    Client(#[source] hyper::Error),
    #[error("cannot upgrade the backend connection: {}", http_reason(.0))]
    Backend(#[source] hyper::Error),
    #[error("{}", io_reason(.0))]
    Io(#[from] std::io::Error),
}

/// Copies bytes both ways until one side ends, then ends both.
async fn tunnel(client: OnUpgrade, backend: OnUpgrade, rate: Option<NonZeroU32>) -> Result<(), TunnelError> {
    let (client, backend) =
        (client.await.map_err(TunnelError::Client)?, backend.await.map_err(TunnelError::Backend)?);
    let (mut from_client, mut to_client) = split(TokioIo::new(client));
    let (mut from_backend, mut to_backend) = split(ThrottledIo::new(TokioIo::new(backend), rate));
    let copied = tokio::select! {
        copied = pump(&mut from_client, &mut to_backend) => copied,
        copied = pump(&mut from_backend, &mut to_client) => copied,
    };
    // The side that ended may be gone already: only the other side must be notified.
    let (client, backend) = tokio::join!(to_client.shutdown(), to_backend.shutdown());
    copied?;
    client.and(backend)?;
    Ok(())
}

/// Copies bytes one way until the reader ends, flushing each piece.
async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    let mut piece = vec![0; READ_SIZE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&piece[..read]).await?;
        to.flush().await?;
    }
}

/// Returns the backend's refusal of the upgrade: the client gets the complete response, then its connection ends.
pub(crate) fn refusal_response(
    shared: &Shared,
    permit: Permit,
    (connection, response): Http1Response,
    authority: &HeaderValue,
) -> Response<ProxyBody> {
    let (mut parts, body) = response.into_parts();
    clean_response(&mut parts.headers, authority);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    parts.extensions.clear();
    let body = ProxyBody::from(ResponseBody::new(body, Carrier::Http1(connection), permit, None));
    Response::from_parts(parts, body.with_deadline(Instant::now() + shared.limits.refused_upgrade_deadline))
}

/// Returns true if a response switches to SPDY.
pub(crate) fn is_spdy<B>(response: &Response<B>) -> bool {
    let contains_word =
        |name, word: &str| first(response.headers(), name).to_ascii_lowercase().contains(word);
    response.status() == StatusCode::SWITCHING_PROTOCOLS
        && contains_word(CONNECTION, "upgrade")
        && contains_word(UPGRADE, "spdy/3.1")
}

fn remove_bearer_protocol(headers: &mut HeaderMap) {
    let offered = || tokens(headers, SEC_WEBSOCKET_PROTOCOL);
    let is_token = |protocol: &&[u8]| protocol.starts_with(BEARER_PROTOCOL);
    if !offered().any(|protocol| is_token(&protocol)) {
        return;
    }
    let offered_protocols: Vec<&[u8]> = offered().filter(|protocol| !is_token(protocol)).collect();
    let offered_protocols = HeaderValue::from_bytes(&offered_protocols.join(&b", "[..]));
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(offered_protocols) = offered_protocols
        && !offered_protocols.is_empty()
    {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, offered_protocols);
    }
}
