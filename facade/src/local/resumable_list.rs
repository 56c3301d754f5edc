//! A list that survives the loss of its control service: another one reads it again at the same revision, and the bytes that the
//! client already has are skipped, if they are identical.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use portico_proto::objects::{Call, ListRequest, ListResponse};
use tonic::{Status, Streaming};

use super::control_call::{ControlCall, client};
use super::resume_query::list_at;
use crate::control_services::{ControlServices, Member, RetryCondition, is_service_lost};

/// First part of a list, and the stream of the others.
pub(super) type StartedList = (ListResponse, Streaming<ListResponse>);

/// Requests a list from one control service.
pub(super) async fn begin(
    member: Arc<Member>,
    request: tonic::Request<ListRequest>,
) -> Result<StartedList, Status> {
    let mut parts = client(&member.transport.calls).list(request).await?.into_inner();
    Ok((parts.message().await?.unwrap_or_default(), parts))
}

/// Length and hash of the bytes that were sent.
#[derive(Clone, Default)]
struct SentBytes {
    bytes: u64,
    hash: DefaultHasher,
}

impl SentBytes {
    fn add(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        self.hash.write(part);
    }

    fn equals(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.hash.finish() == other.hash.finish()
    }
}

/// A list that has started.
pub(super) struct ResumableList {
    services: ControlServices,
    /// Control service that sends the parts.
    member: Arc<Member>,
    control_call: ControlCall,
    /// Revision of the list.
    revision: i64,
    /// Bytes that were received and not sent yet.
    pending: Bytes,
    parts: Streaming<ListResponse>,
    sent: SentBytes,
}

impl ResumableList {
    /// Continues after the first part.
    pub(super) fn new(
        services: ControlServices,
        member: Arc<Member>,
        control_call: ControlCall,
        first: &ListResponse,
        parts: Streaming<ListResponse>,
    ) -> Self {
        let mut sent = SentBytes::default();
        sent.add(&first.body);
        Self { services, member, control_call, revision: first.revision, pending: Bytes::new(), parts, sent }
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
            if !self.pending.is_empty() {
                let part = std::mem::take(&mut self.pending);
                self.sent.add(&part);
                return Ok(Some(part));
            }
            let part = tokio::select! {
                biased;
                part = self.parts.message() => part,
                () = self.services.until_lost(&self.member) => Err(Status::unavailable("the control service was lost")),
            };
            match part {
                Ok(Some(part)) => self.pending = part.body,
                Ok(None) => return Ok(None),
                Err(failure) if is_service_lost(&failure) && self.revision > 0 => self.resume().await?,
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
        let query = list_at(&self.control_call.call.query, self.revision);
        let call = Call { query, ..self.control_call.call.clone() };
        let (control_call, sent) = (&self.control_call, &self.sent);
        let attempt = |member: Arc<Member>| {
            let request = control_call.message(&member, ListRequest { call: Some(call.clone()) });
            async move { skip_sent(sent, begin(member, request).await?).await }
        };
        let (member, (next, parts)) =
            self.services.call(RetryCondition::Always, control_call.deadline(), attempt).await?;
        (self.member, self.pending, self.parts) = (member, next, parts);
        Ok(())
    }
}

/// Skips the bytes that were already sent; fails if they differ. Returns the bytes after them.
async fn skip_sent(
    sent: &SentBytes,
    (first, mut parts): StartedList,
) -> Result<(Bytes, Streaming<ListResponse>), Status> {
    let (mut read, mut body) = (SentBytes::default(), first.body);
    loop {
        let remaining = usize::try_from(sent.bytes - read.bytes).unwrap_or(usize::MAX);
        let skipped = body.split_to(remaining.min(body.len()));
        read.add(&skipped);
        if read.bytes == sent.bytes {
            break;
        }
        let part = parts.message().await?;
        body = part
            .ok_or_else(|| Status::data_loss("the other control service returned a different list"))?
            .body;
    }
    match first.code == 200 && read.equals(sent) {
        true => Ok((body, parts)),
        false => Err(Status::data_loss("the other control service returned a different list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_bytes_are_compared_by_content_whatever_their_parts() {
        let (mut one, mut other) = (SentBytes::default(), SentBytes::default());
        one.add(b"abcd");
        other.add(b"ab");
        assert!(!one.equals(&other));
        other.add(b"cd");
        assert!(one.equals(&other));
        let mut different = SentBytes::default();
        different.add(b"abce");
        assert!(!one.equals(&different));
    }
}
