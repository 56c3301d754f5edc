//! Recorder of a list that is sent in parts.

use std::sync::Arc;

use bytes::BytesMut;

use crate::audited::Audited;

/// Size of a list that an event records.
///
/// Limit (Audit, bytes): the list is omitted, with `audit.k8s.io/truncated`.
const MAX_RECORDED_LIST: usize = 16 << 20;

/// Collects the parts of a list that is streamed to the client, and records the complete list as response object.
pub struct GatheredList {
    audited: Arc<Audited>,
    /// `None` if the list is too large or incomplete.
    whole: Option<BytesMut>,
}

impl GatheredList {
    /// Creates a recorder without parts.
    #[must_use]
    pub fn new(audited: Arc<Audited>) -> Self {
        Self { audited, whole: Some(BytesMut::new()) }
    }

    /// Adds a part of the list.
    pub fn add(&mut self, part: &[u8]) {
        match &mut self.whole {
            Some(whole) if whole.len() + part.len() <= MAX_RECORDED_LIST => whole.extend_from_slice(part),
            _ => self.whole = None,
        }
    }

    /// Notes that the list will not be complete.
    pub fn broken(&mut self) {
        self.whole = None;
    }

    /// Records the list as response object. Called after the last part.
    pub fn end(&mut self) {
        match self.whole.take() {
            Some(whole) => self.audited.set_response_object(whole.freeze()),
            None => self.audited.leave_out_response_object(),
        }
    }
}
