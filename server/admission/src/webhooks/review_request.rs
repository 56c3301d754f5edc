//! AdmissionReview requests (upstream's `CreateV1AdmissionReview`).

use bytes::Bytes;

use super::configuration::ReviewVersion;
use crate::request_view::RequestView;

/// Body of a request, and the UID that its answer must repeat.
pub(super) struct ReviewRequest {
    pub(super) uid: String,
    pub(super) body: Bytes,
}

impl ReviewRequest {
    /// Encodes a review of a request view, with a new UID.
    pub(super) fn new(version: ReviewVersion, view: &RequestView<'_>) -> Self {
        let uid = uuid::Uuid::new_v4().to_string();
        let (api_version, members) = (version.api_version(), view.members());
        let head =
            format!(r#"{{"kind":"AdmissionReview","apiVersion":"{api_version}","request":{{"uid":"{uid}","#);
        let mut body = Vec::with_capacity(head.len() + members.len() + 3);
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(members);
        body.extend_from_slice(b"}}\n");
        Self { uid, body: body.into() }
    }
}
