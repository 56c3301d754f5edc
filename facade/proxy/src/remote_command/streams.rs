//! The SPDY streams of a command and their states.

use portico_machinery::connect::Streams;
use portico_spdy::{Frame, Headers};

use tokio_tungstenite::tungstenite::Message;

use super::channel::{ERROR, RESIZE, STDERR, STDIN, STDOUT, message};
use super::version::Version;

/// Header with the purpose of a stream (`StreamType` of the core API), in SPDY's spelling.
const STREAM_TYPE: &str = "streamtype";

/// State of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandStream {
    pub(super) id: u32,
    pub(super) channel: u8,
    accepted: bool,
    /// True if the kubelet has ended the stream.
    ended: bool,
}

/// All streams of a command.
#[derive(Clone, Debug)]
pub(super) struct CommandStreams(Vec<CommandStream>);

impl CommandStreams {
    /// Creates the streams that a client requests, in upstream's order; ids of a client are odd. A terminal has no stderr stream.
    pub(super) fn new(requested: Streams, version: Version) -> Self {
        let channels = [
            (ERROR, true),
            (STDIN, requested.stdin),
            (STDOUT, requested.stdout),
            (STDERR, requested.stderr && !requested.tty),
            (RESIZE, requested.tty && version.has_resize_stream),
        ];
        let channels = channels.into_iter().filter(|(_, requested)| *requested);
        let streams = channels.zip((1..).step_by(2));
        Self(
            streams
                .map(|((channel, _), id)| CommandStream { id, channel, accepted: false, ended: false })
                .collect(),
        )
    }

    /// Returns the frames that open the streams.
    pub(super) fn syn_streams(&self) -> impl Iterator<Item = Frame> {
        self.0.iter().map(|stream| Frame::SynStream {
            stream: stream.id,
            associated: 0,
            priority: 0,
            fin: false,
            unidirectional: false,
            headers: Headers::single(STREAM_TYPE, type_of(stream.channel)),
        })
    }

    pub(super) fn id_of(&self, channel: u8) -> Option<u32> {
        self.0.iter().find(|stream| stream.channel == channel).map(|stream| stream.id)
    }

    /// Returns the channel of a stream that was accepted and has not ended.
    pub(super) fn channel_of(&self, id: u32) -> Option<u8> {
        self.0.iter().find(|stream| stream.id == id && stream.accepted && !stream.ended).map(|s| s.channel)
    }

    /// Marks a stream as accepted. Returns true if it was the last pending one.
    pub(super) fn accept(&mut self, id: u32) -> bool {
        let Some(stream) = self.0.iter_mut().find(|stream| stream.id == id && !stream.accepted) else {
            return false;
        };
        stream.accepted = true;
        self.all_accepted()
    }

    pub(super) fn all_accepted(&self) -> bool {
        self.0.iter().all(|stream| stream.accepted)
    }

    /// Marks a stream as ended by the kubelet.
    pub(super) fn end(&mut self, id: u32) {
        self.0.iter_mut().filter(|stream| stream.id == id).for_each(|stream| stream.ended = true);
    }

    /// Returns true if the kubelet has ended its output streams and the error stream.
    pub(super) fn all_ended(&self) -> bool {
        let is_from_kubelet = |stream: &&CommandStream| matches!(stream.channel, ERROR | STDOUT | STDERR);
        self.0.iter().filter(is_from_kubelet).all(|stream| stream.ended)
    }

    /// Returns the streams that are still open.
    pub(super) fn open_ids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter(|stream| !stream.ended).map(|stream| stream.id)
    }
}

/// Returns a message that shows a client that its connection is established: empty, on the lowest channel that the client reads.
pub(crate) fn greeting(requested: Streams) -> Message {
    let channel = match requested {
        Streams { stdout: true, .. } => STDOUT,
        Streams { stderr: true, .. } => STDERR,
        _ => ERROR,
    };
    message(channel, b"")
}

fn type_of(channel: u8) -> &'static str {
    match channel {
        STDIN => "stdin",
        STDOUT => "stdout",
        STDERR => "stderr",
        RESIZE => "resize",
        _ => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(requested: Streams, version: &str) -> Vec<(u8, u32)> {
        let opened = CommandStreams::new(requested, Version::from_name(version).unwrap());
        opened.0.iter().map(|stream| (stream.channel, stream.id)).collect()
    }

    #[test]
    fn streams_are_opened_in_upstreams_order_and_a_terminal_has_no_stderr() {
        let all = Streams { stdin: true, stdout: true, stderr: true, tty: false };
        assert_eq!(opened(all, "v4.channel.k8s.io"), [(ERROR, 1), (STDIN, 3), (STDOUT, 5), (STDERR, 7)]);
        let terminal = Streams { tty: true, ..all };
        assert_eq!(opened(terminal, "v3.channel.k8s.io"), [(ERROR, 1), (STDIN, 3), (STDOUT, 5), (RESIZE, 7)]);
        assert_eq!(opened(terminal, "v2.channel.k8s.io"), [(ERROR, 1), (STDIN, 3), (STDOUT, 5)]);
        assert_eq!(opened(Streams::default(), "v5.channel.k8s.io"), [(ERROR, 1)]);
        let errors = Streams { stdout: false, ..all };
        let greeted =
            [all, errors, Streams::default()].map(|requested| greeting(requested).into_data().to_vec());
        assert_eq!(greeted, [[STDOUT], [STDERR], [ERROR]]);
    }

    #[test]
    fn all_ended_after_output_and_status() {
        let requested = Streams { stdin: true, stdout: true, ..Streams::default() };
        let mut opened = CommandStreams::new(requested, Version::from_name("v4.channel.k8s.io").unwrap());
        assert_eq!([1, 3, 5, 5].map(|id| opened.accept(id)), [false, false, true, false]);
        opened.end(5);
        assert_eq!(
            (opened.channel_of(5), opened.channel_of(1), opened.all_ended()),
            (None, Some(ERROR), false)
        );
        opened.end(1);
        assert!(opened.all_ended(), "the input stream need not end");
        assert_eq!(opened.open_ids().collect::<Vec<_>>(), [3]);
    }
}
