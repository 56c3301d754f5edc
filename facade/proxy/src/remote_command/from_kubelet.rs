//! Forwards the kubelet's streams to the client as messages.

use bytes::Bytes;
use futures::{Sink, SinkExt};
use portico_spdy::Frame;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::channel::{ERROR, STDERR, STDIN, STDOUT, message};
use super::link::{FrameReader, LinkError};
use super::outcome::CommandOutcome;
use super::session_limits::SessionLimits;
use super::streams::CommandStreams;
use super::to_kubelet::Signal;
use super::version::Version;
use crate::activity::Activity;

/// Forwards output of the kubelet to the client.
pub(super) struct OutputForwarder<'a> {
    pub(super) streams: &'a mut CommandStreams,
    /// Becomes true when the kubelet has accepted all streams.
    pub(super) ready: watch::Sender<bool>,
    /// Signals for the other direction. Dropped if the queue is full: this direction must not wait for the other.
    pub(super) signals: mpsc::Sender<Signal>,
    pub(super) activity: &'a Activity,
    pub(super) version: Version,
    pub(super) limits: SessionLimits,
}

impl OutputForwarder<'_> {
    /// Returns when the command has ended, or when the connection to the kubelet or to the client has.
    pub(super) async fn run<R, C>(
        mut self,
        mut from_kubelet: FrameReader<R>,
        to_client: &mut C,
    ) -> CommandOutcome
    where
        R: AsyncRead + Unpin,
        C: Sink<Message, Error = SocketError> + Unpin,
    {
        let (mut error, mut whole) = (Vec::new(), false);
        while !self.streams.all_ended() {
            let frame = match from_kubelet.next().await {
                Ok(Some(frame)) => frame,
                Err(LinkError::Spdy(error)) => return CommandOutcome::Failed(error.to_string()),
                // Output that arrived before the end counts.
                Ok(None) | Err(LinkError::Io(_)) => break,
            };
            match frame {
                Frame::Data { stream, fin, data } => {
                    if let Err(ending) = self.data(stream, data, &mut error, to_client).await {
                        return ending;
                    }
                    if fin {
                        whole |= self.streams.id_of(ERROR) == Some(stream);
                        self.ended(stream);
                    }
                }
                Frame::SynReply { stream, fin, .. } => {
                    if self.streams.accept(stream) {
                        self.ready.send_replace(true);
                    }
                    if fin {
                        whole |= self.streams.id_of(ERROR) == Some(stream);
                        self.ended(stream);
                    }
                }
                Frame::RstStream { .. } if !self.streams.all_accepted() => {
                    return CommandOutcome::Failed("Stream reset".to_owned());
                }
                Frame::RstStream { stream, .. } => self.ended(stream),
                // Responses to own pings have an odd id.
                Frame::Ping(id) if id % 2 == 0 => self.signal(Signal::Pong(id)),
                Frame::GoAway { .. } => break,
                _ => {}
            }
        }
        CommandOutcome::from_error_stream(self.version, &error, whole)
    }

    async fn data<C: Sink<Message, Error = SocketError> + Unpin>(
        &self,
        stream: u32,
        data: Bytes,
        error: &mut Vec<u8>,
        to_client: &mut C,
    ) -> Result<(), CommandOutcome> {
        match self.streams.channel_of(stream) {
            _ if data.is_empty() => {}
            Some(ERROR) if error.len() + data.len() > self.limits.error_bytes => {
                return Err(CommandOutcome::Failed("the kubelet's error is too long".to_owned()));
            }
            Some(ERROR) => error.extend_from_slice(&data),
            Some(channel @ (STDOUT | STDERR)) => {
                self.activity.record();
                to_client.send(message(channel, &data)).await.map_err(|_| CommandOutcome::Disconnected)?;
                self.activity.record();
            }
            _ => {}
        }
        Ok(())
    }

    fn ended(&mut self, stream: u32) {
        self.streams.end(stream);
        if self.streams.id_of(STDIN) == Some(stream) {
            self.signal(Signal::InputEnded);
        }
    }

    fn signal(&self, signal: Signal) {
        if self.signals.try_send(signal).is_err() {
            tracing::debug!("kubelet does not read its input, dropping a reply to its frames");
        }
    }
}
