//! Requests that change the protocol (WebSocket, SPDY/3.1): a connection of their own, and then raw bytes.
//!
//! Upstream has had many security holes in this path, so: the answer must be a 101 for the protocol
//! that was asked for, anything below 400 becomes a local 503, an error is passed on whole and then both
//! connections are closed, and the identity stands in the request itself.

use std::num::NonZeroU32;

use http::header::{CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use portico_kit::dial::{http_reason, io_reason};
use portico_kit::header_text::{first, tokens};
use portico_kit::throttled::Throttled;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{Instant, timeout_at};

use crate::body::ProxyBody;
use crate::headers::clean_response;
use crate::outgoing::Outgoing;
use crate::refusal::Refusal;
use crate::stage::Stage;
use crate::transport::{AnswerBody, Answered, Carrier, Http1Error, Permit, Shared, is_failure};
use crate::tunnel::Tunnel;

/// What is read at once from an upgraded connection: a TLS record.
const PIECE: usize = 16 * 1024;

/// What kubelets and container runtimes multiplex streams with, as an upgrade names it.
pub(crate) const SPDY: &str = "SPDY/3.1";
/// Names the protocol within SPDY, in requests those that are offered.
pub(crate) const STREAM_PROTOCOL: &str = "x-stream-protocol-version";

/// How a WebSocket client sends a bearer token; it is a credential and stays here.
const BEARER_PROTOCOL: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// Passes an upgrade on, at this many bytes a second each way. The headers are complete but for what makes it an upgrade.
pub(crate) async fn upgrade(
    shared: &Shared,
    permit: Permit,
    mut request: Outgoing<'_>,
    client: Option<OnUpgrade>,
    protocol: HeaderValue,
    deadline: Option<Instant>,
    rate: Option<NonZeroU32>,
) -> Result<Response<ProxyBody>, Refusal> {
    let client = client.ok_or_else(|| Refusal::Unreachable {
        stage: Stage::Http,
        message: "the client's connection cannot be upgraded".to_owned(),
    })?;
    let ask = ask(&permit, &mut request, protocol.clone());
    let (answered, authority) = match deadline {
        Some(at) => timeout_at(at, ask).await.map_err(|_| Refusal::Deadline { discovery: false })??,
        None => ask.await?,
    };
    match answered.1.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            switched(shared, permit, client, answered, (&protocol, &authority), rate)
        }
        status if status.as_u16() < 400 => Err(Refusal::NotUpgraded(status.as_u16())),
        _ => Ok(refused(shared, permit, answered, &authority)),
    }
}

/// Asks for an upgrade to this protocol on a connection of its own. With the answer comes who was asked.
pub(crate) async fn ask(
    permit: &Permit,
    request: &mut Outgoing<'_>,
    protocol: HeaderValue,
) -> Result<(Answered, HeaderValue), Refusal> {
    request.insert_proxy_headers();
    remove_bearer_protocol(&mut request.headers);
    request.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    request.headers.insert(UPGRADE, protocol);
    let (connection, target) = permit.transport().dedicated().await?;
    match connection.send(request, &target.authority).await {
        Ok(answered) => {
            permit.transport().note(target, !is_failure(answered.1.status()));
            Ok((answered, target.authority.clone()))
        }
        Err(Http1Error::Unsent(error) | Http1Error::Broken(error)) => {
            permit.transport().note(target, false);
            Err(error.into())
        }
    }
}

fn switched(
    shared: &Shared,
    permit: Permit,
    client: OnUpgrade,
    (_connection, mut response): Answered,
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
        let _open = (metrics.upgrade(), opened);
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

/// Bytes both ways until one side ends; then both end.
async fn tunnel(client: OnUpgrade, backend: OnUpgrade, rate: Option<NonZeroU32>) -> Result<(), TunnelError> {
    let (client, backend) =
        (client.await.map_err(TunnelError::Client)?, backend.await.map_err(TunnelError::Backend)?);
    let (mut from_client, mut to_client) = split(TokioIo::new(client));
    let (mut from_backend, mut to_backend) = split(Throttled::new(TokioIo::new(backend), rate));
    let copied = tokio::select! {
        copied = pump(&mut from_client, &mut to_backend) => copied,
        copied = pump(&mut from_backend, &mut to_client) => copied,
    };
    // The side that ended may be gone already: what counts is that the other one learns of it.
    let (client, backend) = tokio::join!(to_client.shutdown(), to_backend.shutdown());
    copied?;
    client.and(backend)?;
    Ok(())
}

/// Bytes one way, each piece at once, until the reader ends.
async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&piece[..read]).await?;
        to.flush().await?;
    }
}

/// The backend refuses the upgrade: the client gets the whole answer, and then the end of its connection.
pub(crate) fn refused(
    shared: &Shared,
    permit: Permit,
    (connection, response): Answered,
    authority: &HeaderValue,
) -> Response<ProxyBody> {
    let (mut parts, body) = response.into_parts();
    clean_response(&mut parts.headers, authority);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    parts.extensions.clear();
    let body = ProxyBody::from(AnswerBody::new(body, Carrier::Http1(connection), permit, None));
    Response::from_parts(parts, body.until(Instant::now() + shared.limits.refused_upgrade_deadline))
}

/// Whether an answer switches to SPDY.
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
    let kept: Vec<&[u8]> = offered().filter(|protocol| !is_token(protocol)).collect();
    let kept = HeaderValue::from_bytes(&kept.join(&b", "[..]));
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(kept) = kept
        && !kept.is_empty()
    {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, kept);
    }
}
