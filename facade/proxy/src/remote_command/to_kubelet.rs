//! Forwards the client's messages to the kubelet's streams.

use std::pin::Pin;
use std::time::Duration;

use futures::stream::Peekable;
use futures::{Stream, StreamExt};
use portico_spdy::Frame;
use tokio::io::AsyncWrite;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::channel::{ClientMessage, RESIZE, STDIN};
use super::link::{FrameWriter, LinkError};
use super::streams::CommandStreams;
use crate::activity::Activity;

/// Interval of PING frames to the kubelet, as upstream's: intermediate proxies must not consider the connection idle.
const PING_PERIOD: Duration = Duration::from_secs(5);
/// Maximum id of a PING: ids have 32 bits, those of a client are odd.
const MAX_PING_ID: u32 = u32::MAX;

/// Signal from the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The kubelet has sent this PING.
    Pong(u32),
    /// The kubelet accepts no more input.
    InputEnded,
}

/// Next event to process.
enum InputEvent {
    Signal(Signal),
    Ping,
    Ready,
    FromClient(ClientMessage),
}

/// Forwards input of the client to the kubelet.
pub(super) struct InputForwarder<'a> {
    stdin: Option<u32>,
    resize: Option<u32>,
    activity: &'a Activity,
    signals: mpsc::Receiver<Signal>,
    ready: watch::Receiver<bool>,
    pings: Interval,
    ping: u32,
}

impl<'a> InputForwarder<'a> {
    pub(super) fn new(
        opened: &CommandStreams,
        activity: &'a Activity,
        signals: mpsc::Receiver<Signal>,
        ready: watch::Receiver<bool>,
    ) -> Self {
        let mut pings = interval_at(Instant::now() + PING_PERIOD, PING_PERIOD);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (stdin, resize) = (opened.id_of(STDIN), opened.id_of(RESIZE));
        Self { stdin, resize, activity, signals, ready, pings, ping: 1 }
    }

    /// Returns when the client disconnects. A kubelet that accepts no more input may still send output, so that does not end the
    /// session. Messages are not read before the kubelet has accepted all streams, because it drops earlier input.
    pub(super) async fn run<W, M>(mut self, to_kubelet: &mut FrameWriter<W>, from_client: &mut Peekable<M>)
    where
        W: AsyncWrite + Unpin,
        M: Stream<Item = Result<Message, SocketError>> + Unpin,
    {
        let mut ready = false;
        loop {
            let next = tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => InputEvent::Signal(signal),
                _ = self.pings.tick() => InputEvent::Ping,
                true = is_ready(&mut self.ready), if !ready => InputEvent::Ready,
                message = next_message(from_client, ready) => match message {
                    Some(message) => InputEvent::FromClient(message),
                    None => return,
                },
            };
            let sent = match next {
                InputEvent::Signal(Signal::Pong(id)) => to_kubelet.send([Frame::Ping(id)]).await,
                InputEvent::Signal(Signal::InputEnded) => self.end_input(to_kubelet).await,
                InputEvent::Ping => self.ping(to_kubelet).await,
                InputEvent::FromClient(ClientMessage::Disconnected) => return,
                InputEvent::FromClient(message) => self.on_message(to_kubelet, message).await,
                InputEvent::Ready => {
                    ready = true;
                    Ok(())
                }
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "cannot send the input of a command to the kubelet");
            }
        }
    }

    async fn ping<W: AsyncWrite + Unpin>(
        &mut self,
        to_kubelet: &mut FrameWriter<W>,
    ) -> Result<(), LinkError> {
        let id = self.ping;
        self.ping = if id == MAX_PING_ID { 1 } else { id + 2 };
        to_kubelet.send([Frame::Ping(id)]).await
    }

    async fn on_message<W: AsyncWrite + Unpin>(
        &mut self,
        to_kubelet: &mut FrameWriter<W>,
        message: ClientMessage,
    ) -> Result<(), LinkError> {
        match message {
            ClientMessage::Data(channel, data) => {
                self.activity.record();
                let stream = match channel {
                    STDIN => self.stdin,
                    RESIZE => self.resize,
                    _ => None,
                };
                match stream {
                    Some(stream) => to_kubelet.data(stream, data).await,
                    None => Ok(()),
                }
            }
            ClientMessage::Closed(STDIN) => self.end_input(to_kubelet).await,
            ClientMessage::Closed(_) | ClientMessage::Ignored | ClientMessage::Disconnected => Ok(()),
        }
    }

    /// Closes the input stream; does nothing if it is closed already.
    async fn end_input<W: AsyncWrite + Unpin>(
        &mut self,
        to_kubelet: &mut FrameWriter<W>,
    ) -> Result<(), LinkError> {
        match self.stdin.take() {
            Some(stdin) => to_kubelet.end(stdin).await,
            None => Ok(()),
        }
    }
}

/// Returns when the client disconnects before it sends any data. Pings are read, so that they do not hide the
/// end; messages stay unread.
pub(crate) async fn wait_disconnected<M: Stream<Item = Result<Message, SocketError>> + Unpin>(
    from_client: &mut Peekable<M>,
) {
    let mut from_client = Pin::new(from_client);
    while let Some(Ok(message)) = from_client.as_mut().peek().await {
        match message {
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => drop(from_client.next().await),
            _ => return std::future::pending().await,
        }
    }
}

/// Returns the client's next message once the kubelet is `ready`; `None` if the client has disconnected.
async fn next_message<M: Stream<Item = Result<Message, SocketError>> + Unpin>(
    from_client: &mut Peekable<M>,
    ready: bool,
) -> Option<ClientMessage> {
    if !ready {
        wait_disconnected(from_client).await;
        return None;
    }
    Some(ClientMessage::of(from_client.next().await?.ok()?))
}

async fn is_ready(ready: &mut watch::Receiver<bool>) -> bool {
    ready.wait_for(|ready| *ready).await.is_ok()
}
