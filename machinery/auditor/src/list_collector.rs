//! Collector of a list that is sent in parts.

use std::sync::Arc;

use bytes::BytesMut;

use crate::audited_request::AuditedRequest;

/// Size of a list that an event records.
///
/// Limit (Audit, bytes): the list is omitted, with `audit.k8s.io/truncated`.
const MAX_RECORDED_LIST: usize = 16 << 20;

/// Collects the parts of a list that is streamed to the client, and records the complete list as response object.
pub struct ListCollector {
    audited: Arc<AuditedRequest>,
    /// `None` if the list is too large or incomplete.
    buffer: Option<BytesMut>,
}

impl ListCollector {
    /// Creates a collector without parts.
    #[must_use]
    pub fn new(audited: Arc<AuditedRequest>) -> Self {
        Self { audited, buffer: Some(BytesMut::new()) }
    }

    /// Adds a part of the list.
    pub fn push(&mut self, part: &[u8]) {
        match &mut self.buffer {
            Some(whole) if whole.len() + part.len() <= MAX_RECORDED_LIST => whole.extend_from_slice(part),
            _ => self.buffer = None,
        }
    }

    /// Notes that the list will not be complete.
    pub fn discard(&mut self) {
        self.buffer = None;
    }

    /// Records the list as response object. Called after the last part.
    pub fn finish(&mut self) {
        match self.buffer.take() {
            Some(whole) => self.audited.set_response_object(whole.freeze()),
            None => self.audited.omit_response_object(),
        }
    }
}
