//! A command's session: opens its streams, then forwards messages and frames both ways until the command ends.

use std::time::Duration;

use futures::stream::Peekable;
use futures::{Sink, Stream};
use portico_gostd::time::format_duration;
use portico_machinery::connect::Streams;
use portico_spdy::{Frame, RstStatus};
use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::from_kubelet::OutputForwarder;
use super::link::{FrameReader, FrameWriter, LinkError};
use super::outcome::CommandOutcome;
use super::session_limits::SessionLimits;
use super::streams::CommandStreams;
use super::to_kubelet::InputForwarder;
use super::version::Version;
use crate::activity::Activity;

/// Queue length for signals from one direction to the other; further signals are dropped, such as those of a kubelet that sends
/// many pings.
const SIGNALS: usize = 8;
/// Time for the kubelet to receive the end of a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves a command whose kubelet has switched to SPDY.
pub(crate) async fn run<I, C, M>(
    kubelet: I,
    to_client: &mut C,
    from_client: &mut Peekable<M>,
    (requested, version): (Streams, Version),
    limits: SessionLimits,
) -> CommandOutcome
where
    I: AsyncRead + AsyncWrite,
    C: Sink<Message, Error = SocketError> + Unpin,
    M: Stream<Item = Result<Message, SocketError>> + Unpin,
{
    let (reader, writer) = split(kubelet);
    let mut opened = CommandStreams::new(requested, version);
    let mut to_kubelet = match FrameWriter::new(writer) {
        Ok(to_kubelet) => to_kubelet,
        Err(error) => return CommandOutcome::Failed(error.to_string()),
    };
    if let Err(error) = to_kubelet.send(opened.syn_streams()).await {
        return CommandOutcome::Failed(error.to_string());
    }
    let (signals, signalled) = mpsc::channel(SIGNALS);
    let (ready, mut is_ready) = watch::channel(false);
    let activity = Activity::new(limits.idle_timeout);
    let feeder = InputForwarder::new(&opened, &activity, signalled, ready.subscribe());
    let listener =
        OutputForwarder { streams: &mut opened, ready, signals, activity: &activity, version, limits };
    let from_kubelet = FrameReader::new(reader);
    let reply_timeout = async {
        if timeout(limits.reply_timeout, is_ready.wait_for(|ready| *ready)).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    // Polled in random order: with a fixed order, a side that sends without pause would starve the other one.
    let ending = tokio::select! {
        ending = listener.run(from_kubelet, to_client) => ending,
        () = feeder.run(&mut to_kubelet, from_client) => CommandOutcome::Disconnected,
        () = reply_timeout => CommandOutcome::Failed("Timeout occurred".to_owned()),
        () = activity.wait_idle() => CommandOutcome::Failed(format!("no data for {}", format_duration(limits.idle_timeout))),
    };
    if let Ok(Err(error)) = timeout(CLOSE_TIMEOUT, close_streams(&mut to_kubelet, &opened)).await {
        tracing::debug!(%error, "cannot close the streams of a command");
    }
    ending
}

/// Ends the open streams and the connection, as upstream does when it closes a connection.
async fn close_streams<W: AsyncWrite + Unpin>(
    to_kubelet: &mut FrameWriter<W>,
    opened: &CommandStreams,
) -> Result<(), LinkError> {
    let resets = opened.open_ids().map(|stream| Frame::RstStream { stream, status: RstStatus::CANCEL });
    to_kubelet.send(resets.chain([Frame::GoAway { last_good: 0, status: 0 }])).await?;
    to_kubelet.shutdown().await
}
