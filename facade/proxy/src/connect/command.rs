//! A command over WebSocket: the client's handshake is completed first, then SPDY is requested from the kubelet. A later failure
//! is a Status on the client's error channel.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::Peekable;
use futures::{Sink, SinkExt, Stream, StreamExt};
use http::header::{CONNECTION, HeaderValue, LOCATION, UPGRADE};
use http::uri::PathAndQuery;
use http::{Method, Request};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use portico_kit::header_text::{first, text};
use portico_kit::throttled_io::ThrottledIo;
use portico_machinery::Object;
use portico_machinery::connect::Streams;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::translation::CHANNEL_PROTOCOL;
use super::{ConnectResult, failure, internal_headers};
use crate::Proxy;
use crate::outgoing_request::OutgoingRequest;
use crate::refusal_text::read_text;
use crate::remote_command::{self, CommandOutcome, OFFERED, SessionLimits, Version, wait_disconnected};
use crate::request_body::RequestBody;
use crate::transport::{Http1Error, Http1Response, Permit, Shared};
use crate::tunnel::Tunnel;
use crate::upgrade::{SPDY, STREAM_PROTOCOL, is_spdy};
use crate::web_socket::{self, Handshake};

/// Time for a client to receive the end of the command.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A command that the client requested.
struct Command {
    shared: Arc<Shared>,
    permit: Permit,
    target: PathAndQuery,
    streams: Streams,
}

impl Proxy {
    pub(super) fn command(
        &self,
        permit: Permit,
        target: PathAndQuery,
        mut request: Request<RequestBody>,
        streams: Streams,
    ) -> ConnectResult {
        let handshake = match Handshake::read(request.method(), request.headers()) {
            Ok(handshake) => handshake,
            Err(refusal) => {
                self.shared.metrics.record_translation(400);
                return Ok(refusal.response());
            }
        };
        let Some(client) = request.extensions_mut().remove::<OnUpgrade>() else {
            self.shared.metrics.record_translation(400);
            return Err(failure::unknown("the client's connection cannot be upgraded"));
        };
        let command = Command { shared: self.shared.clone(), permit, target, streams };
        let opened = Tunnel::default();
        let mut response = handshake.response(Some(HeaderValue::from_static(CHANNEL_PROTOCOL)));
        response.extensions_mut().insert(opened.clone());
        self.shared.tasks.spawn_until_cancelled("proxy-command", async move {
            let _open = (command.shared.metrics.track_upgrade(), opened);
            if let Err(error) = command.serve(client).await {
                tracing::debug!(%error, "client disconnected before the command ended");
            }
        });
        Ok(response)
    }
}

/// The client did not complete the upgrade, or disconnected.
#[derive(Debug, thiserror::Error)]
enum ClientError {
    #[error("cannot upgrade the connection: {0}")]
    Upgrade(#[from] hyper::Error),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("the client does not read the end of the command")]
    Stalled(#[from] tokio::time::error::Elapsed),
}

impl Command {
    async fn serve(&self, client: OnUpgrade) -> Result<(), ClientError> {
        let limits = &self.shared.limits;
        let socket = web_socket::open(client, limits.web_socket_message_bytes).await?;
        let (mut to_client, from_client) = socket.split();
        let mut from_client = from_client.peekable();
        if let Err(error) = to_client.send(remote_command::greeting(self.streams)).await {
            self.shared.metrics.record_translation(400);
            return Err(error.into());
        }
        let ending = self.run_command(&mut to_client, &mut from_client).await;
        self.shared.metrics.record_translation(ending.code());
        let last = async {
            if ending != CommandOutcome::Disconnected {
                to_client.send(ending.message()).await?;
            }
            to_client.send(web_socket::normal_closure()).await?;
            // Closing a connection that has unread input may discard the last output.
            while let Some(Ok(_)) = from_client.next().await {}
            Ok::<_, SocketError>(())
        };
        Ok(timeout(CLOSE_TIMEOUT, last).await??)
    }

    async fn run_command<C, M>(&self, to_client: &mut C, from_client: &mut Peekable<M>) -> CommandOutcome
    where
        C: Sink<Message, Error = SocketError> + Unpin,
        M: Stream<Item = Result<Message, SocketError>> + Unpin,
    {
        let limits = &self.shared.limits;
        let upgrade = tokio::select! {
            upgrade = timeout(limits.stream_creation_timeout, self.request_spdy()) => upgrade,
            () = wait_disconnected(from_client) => return CommandOutcome::Disconnected,
        };
        let upgrade =
            upgrade.unwrap_or_else(|_| Err("error sending request: context deadline exceeded".to_owned()));
        let bounds = SessionLimits {
            reply_timeout: limits.stream_creation_timeout,
            idle_timeout: limits.web_socket_idle_timeout,
            error_bytes: limits.refusal_bytes,
        };
        match upgrade {
            Ok((kubelet, version)) => {
                let request = (self.streams, version);
                let kubelet = ThrottledIo::new(TokioIo::new(kubelet), limits.connection_bytes_per_second);
                remote_command::run(kubelet, to_client, from_client, request, bounds).await
            }
            Err(message) => CommandOutcome::Failed(message),
        }
    }

    /// Requests SPDY from the kubelet. Errors have the text of upstream's `SpdyRoundTripper`.
    async fn request_spdy(&self) -> Result<(Upgraded, Version), String> {
        let transport = self.permit.transport();
        let authority = transport.authority(0).clone();
        let url = format!("https://{}{}", text(&authority), self.target);
        let failed = |error| format!("error sending request: Post {url:?}: {}", failure::of_request(error));
        let mut headers = internal_headers();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(SPDY));
        for version in OFFERED {
            headers.append(STREAM_PROTOCOL, HeaderValue::from_static(version));
        }
        let mut request =
            OutgoingRequest::internal(Method::POST, self.target.clone(), authority.clone(), headers);
        let (connection, _) = transport.dedicated_connection().await.map_err(failed)?;
        let sent = connection.send(&mut request, &authority).await;
        let (connection, mut response) = match sent {
            Ok(answered) => answered,
            Err(Http1Error::Unsent(error) | Http1Error::Broken(error)) => return Err(failed(error)),
        };
        if response.status().is_redirection() && response.headers().contains_key(LOCATION) {
            return Err(format!("error sending request: Post {url:?}: redirect not allowed"));
        }
        if !is_spdy(&response) {
            return Err(self.refusal_message((connection, response)).await);
        }
        let chosen = first(response.headers(), STREAM_PROTOCOL);
        let version = Version::from_name(chosen)
            .ok_or_else(|| format!("the kubelet chose the protocol {chosen:?}, which was not offered"))?;
        let upgraded = hyper::upgrade::on(&mut response).await;
        Ok((upgraded.map_err(|error| format!("unable to upgrade connection: {error}"))?, version))
    }

    /// Returns the reason for which a kubelet refused SPDY: the message of its response, or the response's text.
    async fn refusal_message(&self, (connection, response): Http1Response) -> String {
        let limits = &self.shared.limits;
        let text = read_text(response.into_body(), limits.refusal_bytes);
        let text = timeout(limits.refused_upgrade_deadline, text).await;
        drop(connection);
        let Ok(text) = text else {
            return "unable to upgrade connection: unable to read error from server response".to_owned();
        };
        let object = Object::from_json(text.as_bytes()).ok();
        let field_text =
            |field| object.as_ref().map(|object| object.str_at(field).trim()).filter(|text| !text.is_empty());
        let message = field_text("message").or_else(|| field_text("error")).unwrap_or(text.trim());
        let message = if message.is_empty() { "empty server response" } else { message };
        format!("unable to upgrade connection: {message}")
    }
}
