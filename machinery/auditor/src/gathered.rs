//! A list that is recorded while its parts pass.

use std::sync::Arc;

use bytes::BytesMut;

use crate::audited::Audited;

/// Size of a list that an event records.
///
/// Limit (Audit, bytes): the list is omitted, with `audit.k8s.io/truncated`.
const MAX_RECORDED_LIST: usize = 16 << 20;

/// See the module.
pub struct GatheredList {
    audited: Arc<Audited>,
    /// Nothing when it is too large, or did not come whole.
    whole: Option<BytesMut>,
}

impl GatheredList {
    /// Of a list of which nothing has come.
    #[must_use]
    pub fn new(audited: Arc<Audited>) -> Self {
        Self { audited, whole: Some(BytesMut::new()) }
    }

    /// Adds a part.
    pub fn add(&mut self, part: &[u8]) {
        match &mut self.whole {
            Some(whole) if whole.len() + part.len() <= MAX_RECORDED_LIST => whole.extend_from_slice(part),
            _ => self.whole = None,
        }
    }

    /// The list will not come whole.
    pub fn broken(&mut self) {
        self.whole = None;
    }

    /// All parts have passed: they are what was answered.
    pub fn end(&mut self) {
        match self.whole.take() {
            Some(whole) => self.audited.set_response_object(whole.freeze()),
            None => self.audited.leave_out_response_object(),
        }
    }
}
