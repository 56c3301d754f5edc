//! Acknowledgements that wait for room in the stream.

use portico_proto::config::stream_request::Message;
use portico_proto::config::{Ack, StreamRequest};
use tokio::sync::mpsc;

/// The acknowledgement that is not sent yet. A newer one replaces it and takes over its refusals.
#[derive(Default)]
pub(super) struct Acks {
    unsent: Option<Ack>,
}

impl Acks {
    /// Adds an acknowledgement.
    pub(super) fn add(&mut self, mut ack: Ack) {
        if let Some(mut earlier) = self.unsent.take() {
            earlier.refused.append(&mut ack.refused);
            ack.refused = earlier.refused;
        }
        self.unsent = Some(ack);
    }

    /// Sends the pending acknowledgement if the stream has room.
    pub(super) fn send(&mut self, outbox: &mpsc::Sender<StreamRequest>) {
        if self.unsent.is_some()
            && let Ok(room) = outbox.try_reserve()
        {
            room.send(StreamRequest { message: self.unsent.take().map(Message::Ack) });
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_proto::config::{Refusal, Version};

    use super::*;

    fn ack(revision: i64, refused: &[&str]) -> Ack {
        let refused = refused.iter().map(|key| Refusal { key: (*key).to_owned(), ..Refusal::default() });
        Ack { version: Some(Version { revision, ..Version::default() }), refused: refused.collect() }
    }

    #[tokio::test]
    async fn refusals_are_reported_once_there_is_room() {
        let (outbox, mut inbox) = mpsc::channel(1);
        let mut acks = Acks::default();
        for (revision, refused) in [(1, &["a"][..]), (2, &["b"]), (3, &[])] {
            acks.add(ack(revision, refused));
            acks.send(&outbox);
        }
        let sent = inbox.recv().await.and_then(|request| request.message);
        assert_eq!(sent, Some(Message::Ack(ack(1, &["a"]))));
        acks.send(&outbox);
        let sent = inbox.recv().await.and_then(|request| request.message);
        assert_eq!(sent, Some(Message::Ack(ack(3, &["b"]))));
        acks.send(&outbox);
        assert!(inbox.try_recv().is_err());
    }
}
