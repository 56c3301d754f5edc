//! A list that survives the loss of its control service: another one reads it again at the same revision, and the bytes that the
//! client already has are skipped, if they are identical.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use portico_proto::objects::{Call, ListRequest, ListResponse};
use tonic::{Status, Streaming};

use super::again::list_at;
use super::asked::{Asked, client};
use crate::control_services::{ControlServices, Member, Repeat, was_lost};

/// First part of a list, and the stream of the others.
pub(super) type Begun = (ListResponse, Streaming<ListResponse>);

/// Requests a list from one control service.
pub(super) async fn begin(
    member: Arc<Member>,
    request: tonic::Request<ListRequest>,
) -> Result<Begun, Status> {
    let mut parts = client(&member.transport.calls).list(request).await?.into_inner();
    Ok((parts.message().await?.unwrap_or_default(), parts))
}

/// Length and hash of the bytes that were sent.
#[derive(Clone, Default)]
struct Sent {
    bytes: u64,
    hash: DefaultHasher,
}

impl Sent {
    fn add(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        self.hash.write(part);
    }

    fn is_as(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.hash.finish() == other.hash.finish()
    }
}

/// A list that has started.
pub(super) struct Resumed {
    services: ControlServices,
    /// Control service that sends the parts.
    member: Arc<Member>,
    asked: Asked,
    /// Revision of the list.
    revision: i64,
    /// Bytes that were received and not sent yet.
    next: Bytes,
    parts: Streaming<ListResponse>,
    sent: Sent,
}

impl Resumed {
    /// Continues after the first part.
    pub(super) fn new(
        services: ControlServices,
        member: Arc<Member>,
        asked: Asked,
        first: &ListResponse,
        parts: Streaming<ListResponse>,
    ) -> Self {
        let mut sent = Sent::default();
        sent.add(&first.body);
        Self { services, member, asked, revision: first.revision, next: Bytes::new(), parts, sent }
    }

    /// Stream of the remaining parts.
    pub(super) fn parts(self) -> impl Stream<Item = Result<Bytes, Status>> + Send {
        stream::unfold(Some(self), |list| async move {
            let mut list = list?;
            match list.next().await {
                Ok(part) => Some((Ok(part?), Some(list))),
                Err(failure) => Some((Err(failure), None)),
            }
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if !self.next.is_empty() {
                let part = std::mem::take(&mut self.next);
                self.sent.add(&part);
                return Ok(Some(part));
            }
            let part = tokio::select! {
                biased;
                part = self.parts.message() => part,
                () = self.services.lost(&self.member) => Err(Status::unavailable("the control service was lost")),
            };
            match part {
                Ok(Some(part)) => self.next = part.body,
                Ok(None) => return Ok(None),
                Err(failure) if was_lost(&failure) && self.revision > 0 => self.resume().await?,
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn resume(&mut self) -> Result<(), Status> {
        tracing::debug!(
            server = self.member.name,
            sent = self.sent.bytes,
            "resuming a list on another control service"
        );
        let query = list_at(&self.asked.call.query, self.revision);
        let call = Call { query, ..self.asked.call.clone() };
        let (asked, sent) = (&self.asked, &self.sent);
        let again = |member: Arc<Member>| {
            let request = asked.message(&member, ListRequest { call: Some(call.clone()) });
            async move { behind(sent, begin(member, request).await?).await }
        };
        let (member, (next, parts)) = self.services.call(Repeat::Always, asked.deadline(), again).await?;
        (self.member, self.next, self.parts) = (member, next, parts);
        Ok(())
    }
}

/// Skips the bytes that were already sent; fails if they differ. Returns the bytes after them.
async fn behind(sent: &Sent, (first, mut parts): Begun) -> Result<(Bytes, Streaming<ListResponse>), Status> {
    let (mut read, mut body) = (Sent::default(), first.body);
    loop {
        let left = usize::try_from(sent.bytes - read.bytes).unwrap_or(usize::MAX);
        let known = body.split_to(left.min(body.len()));
        read.add(&known);
        if read.bytes == sent.bytes {
            break;
        }
        let part = parts.message().await?;
        body = part.ok_or_else(|| Status::data_loss("the list is another one"))?.body;
    }
    match first.code == 200 && read.is_as(sent) {
        true => Ok((body, parts)),
        false => Err(Status::data_loss("the list is another one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_known_by_its_content_however_it_was_cut() {
        let (mut one, mut other) = (Sent::default(), Sent::default());
        one.add(b"abcd");
        other.add(b"ab");
        assert!(!one.is_as(&other));
        other.add(b"cd");
        assert!(one.is_as(&other));
        let mut different = Sent::default();
        different.add(b"abce");
        assert!(!one.is_as(&different));
    }
}
