//! SPDY in the messages of a WebSocket: extracted for the kubelet, and wrapped for the client. Upstream's `TunnelingHandler`.
//!
//! The SPDY frames are not interpreted: a frame may span several messages.

use std::time::Duration;

use bytes::BytesMut;
use futures::{SinkExt, StreamExt};
use http::Response;
use http::header::HeaderValue;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use portico_kit::header_text::text;
use portico_kit::throttled_io::ThrottledIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::translation::TUNNEL_PREFIX;
use super::{ConnectResult, failure};
use crate::Proxy;
use crate::activity::Activity;
use crate::outgoing_request::OutgoingRequest;
use crate::refusal::Refusal;
use crate::settings::Limits;
use crate::transport::{Http1Response, Permit};
use crate::tunnel::Tunnel;
use crate::upgrade::{self, STREAM_PROTOCOL, is_spdy};
use crate::web_socket::{self, Handshake};

/// Maximum bytes of one read from the kubelet, and so of one message.
const READ_SIZE: usize = 32 * 1024;
/// Time for the client to receive the last message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl Proxy {
    /// Requests SPDY from the kubelet, and completes the client's handshake if the kubelet agrees.
    pub(super) async fn open_tunnel(
        &self,
        permit: Permit,
        mut request: OutgoingRequest<'_>,
        client: Option<OnUpgrade>,
        handshake: Handshake,
    ) -> ConnectResult {
        let metrics = &self.shared.metrics;
        let client = client.ok_or_else(|| failure::unknown("the client's connection cannot be upgraded"))?;
        let upgrade_result =
            upgrade::request_upgrade(&permit, &mut request, HeaderValue::from_static(upgrade::SPDY)).await;
        let (answered, authority) = upgrade_result.map_err(failure::of_upgrade)?;
        match answered.1.status().as_u16() {
            101 if is_spdy(&answered.1) => {
                metrics.record_tunnel(101);
                Ok(self.start_tunnel(permit, client, answered, handshake))
            }
            101 => {
                metrics.record_tunnel(500);
                Err(failure::unknown("unable to upgrade: missing upgrade headers in response"))
            }
            code @ ..400 => Err(failure::of_upgrade(Refusal::NotUpgraded(code))),
            code => {
                metrics.record_tunnel(code);
                Ok(upgrade::refusal_response(&self.shared, permit, answered, &authority))
            }
        }
    }

    fn start_tunnel(
        &self,
        permit: Permit,
        client: OnUpgrade,
        (_connection, mut response): Http1Response,
        handshake: Handshake,
    ) -> Response<crate::ProxyBody> {
        let kubelet = hyper::upgrade::on(&mut response);
        let chosen = response.headers().get(STREAM_PROTOCOL).map(text);
        let chosen =
            chosen.and_then(|chosen| HeaderValue::try_from(format!("{TUNNEL_PREFIX}{}", chosen.trim())).ok());
        let opened = Tunnel::default();
        let mut response = handshake.response(chosen);
        response.extensions_mut().insert(opened.clone());
        let shared = self.shared.clone();
        self.shared.tasks.spawn_until_cancelled("proxy-message-tunnel", async move {
            let _open = (shared.metrics.track_upgrade(), permit, opened);
            let limits = &shared.limits;
            if let Err(error) = copy_both_ways(client, kubelet, limits).await {
                tracing::debug!(%error, "SPDY tunnel over WebSocket failed");
            }
        });
        response
    }
}

#[derive(Debug, thiserror::Error)]
enum TunnelError {
    #[error("cannot upgrade the connection: {0}")]
    Upgrade(#[from] hyper::Error),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("SPDY over WebSocket requires binary messages")]
    Text,
    #[error("no data received for {}", portico_gostd::time::format_duration(*.0))]
    Idle(Duration),
    #[error("the client does not read the end of the stream")]
    Stalled(#[from] tokio::time::error::Elapsed),
}

/// Copies bytes both ways until one side ends, then ends both.
async fn copy_both_ways(client: OnUpgrade, kubelet: OnUpgrade, limits: &Limits) -> Result<(), TunnelError> {
    let socket = web_socket::open(client, limits.web_socket_message_bytes).await?;
    let kubelet = ThrottledIo::new(TokioIo::new(kubelet.await?), limits.connection_bytes_per_second);
    let (mut from_kubelet, mut to_kubelet) = split(kubelet);
    let (mut to_client, mut from_client) = socket.split();
    let idle = limits.web_socket_idle_timeout;
    let activity = Activity::new(idle);
    let copied = tokio::select! {
        copied = copy_to_messages(&mut from_kubelet, &mut to_client, &activity) => copied,
        copied = copy_from_messages(&mut from_client, &mut to_kubelet, &activity) => copied,
        () = activity.wait_idle() => Err(TunnelError::Idle(idle)),
    };
    let ended = async {
        to_kubelet.shutdown().await?;
        to_client.send(web_socket::normal_closure()).await?;
        Ok::<_, TunnelError>(())
    };
    let ended = timeout(CLOSE_TIMEOUT, ended).await?;
    copied.and(ended)
}

async fn copy_to_messages<R, C>(from: &mut R, to: &mut C, activity: &Activity) -> Result<(), TunnelError>
where
    R: AsyncRead + Unpin,
    C: futures::Sink<Message, Error = SocketError> + Unpin,
{
    let mut piece = BytesMut::new();
    loop {
        piece.reserve(READ_SIZE);
        if from.read_buf(&mut piece).await? == 0 {
            return Ok(());
        }
        activity.record();
        to.send(Message::Binary(piece.split().freeze())).await?;
    }
}

async fn copy_from_messages<M, W>(from: &mut M, to: &mut W, activity: &Activity) -> Result<(), TunnelError>
where
    M: futures::Stream<Item = Result<Message, SocketError>> + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        match from.next().await.transpose()? {
            Some(Message::Binary(bytes)) => {
                activity.record();
                to.write_all(&bytes).await?;
                to.flush().await?;
            }
            Some(Message::Text(_)) => return Err(TunnelError::Text),
            Some(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Some(Message::Close(_)) | None => return Ok(()),
        }
    }
}
