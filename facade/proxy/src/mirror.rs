//! Copies of a share of a backend's requests for another backend, the mirror.
//!
//! The mirror's responses are discarded, and no request waits for the mirror: a separate task sends each copy. The number of
//! copies in flight is limited; copies above the limit are dropped. A mirror gets the caller's identity only if it is verified.

mod tee;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::poll_fn;
use http::header::{HeaderName, HeaderValue};
use http_body::Body as _;
use http_body_util::Full;
use portico_machinery::route::{self, Route, Trust};
use tokio::time::timeout;

use crate::mirror_counts::{MirrorCounts, MirrorStats};
use crate::outgoing_request::OutgoingRequest;
use crate::request_body::RequestBody;
use crate::transport::{
    Permit, ResponseBody, Shared, Transport, TransportError, TransportKey, Transports, is_safe,
};
use tee::Tee;

/// Header that marks a copy. A copy is not copied again: a mirror may be this server.
const COPY_HEADER: HeaderName = HeaderName::from_static("portico-mirrored");
/// Task name of a copy.
const TASK: &str = "proxy-mirrored-request";

/// The mirror of one route's backend.
#[derive(Debug)]
pub(crate) struct Mirror {
    policy: route::Mirror,
    transport: Arc<Transport>,
    counts: Arc<MirrorCounts>,
    /// True if the mirror gets the caller's identity.
    sends_identity: bool,
    /// Requests that were eligible for a copy.
    eligible: AtomicUsize,
}

/// A copy that was not sent yet. If it is dropped, it is counted as dropped.
struct CopiedRequest {
    request: OutgoingRequest<'static>,
    permit: Option<Permit>,
    counts: Arc<MirrorCounts>,
    shared: Arc<Shared>,
}

impl Mirror {
    /// Creates the mirror of this route, if its policy has one.
    pub(crate) fn of(
        route: &Route,
        ca: Option<&Bytes>,
        shared: &Arc<Shared>,
        transports: &Transports,
    ) -> Option<Result<Self, TransportError>> {
        let backend = route.backend.as_ref()?;
        let policy = backend.policy.mirror.clone()?;
        let key = TransportKey::to_mirror(&route.name, backend, &policy, &shared.limits);
        let sends_identity = backend.trust != Trust::Insecure;
        Some(transports.get(shared, key, None, ca).map(|transport| {
            let counts = transport.mirror_counts();
            Self { policy, transport, counts, sends_identity, eligible: AtomicUsize::new(0) }
        }))
    }

    /// Returns the counters of the mirror.
    pub(crate) fn stats(&self) -> MirrorStats {
        self.counts.read()
    }

    /// Copies a request that is about to be sent, if the policy selects the request.
    pub(crate) fn copy(&self, request: &mut OutgoingRequest<'_>, shared: &Arc<Shared>) {
        let max_bytes = usize::try_from(self.policy.max_body_bytes).unwrap_or(usize::MAX);
        let is_eligible = max_bytes > 0 || is_safe(request);
        if !is_eligible || request.headers.contains_key(COPY_HEADER) || !self.is_in_share() {
            return;
        }
        let too_long = request.body.size_hint().lower() > u64::from(self.policy.max_body_bytes);
        let permit = if too_long { None } else { self.transport.admit().ok() };
        let Some(permit) = permit else {
            shared.metrics.record_mirrored("dropped");
            return self.counts.record_dropped();
        };
        let mut copy = CopiedRequest {
            request: request.copy_for_mirror(self.sends_identity),
            permit: Some(permit),
            counts: self.counts.clone(),
            shared: shared.clone(),
        };
        copy.request.headers.insert(COPY_HEADER, HeaderValue::from_static("true"));
        if request.body.is_end_stream() || request.body.size_hint().exact() == Some(0) {
            copy.send(Bytes::new());
        } else {
            let body = std::mem::take(&mut request.body);
            request.body = body.filtered(|body| Tee::new(body, max_bytes, move |whole| copy.send(whole)));
        }
    }

    /// Spreads the share evenly: selects the policy's percentage of every hundred consecutive requests.
    fn is_in_share(&self) -> bool {
        let percent = usize::try_from(self.policy.percent).unwrap_or(100);
        let seen = self.eligible.fetch_add(1, Ordering::Relaxed) % 100;
        (seen * percent) % 100 < percent
    }
}

impl CopiedRequest {
    /// Sends the copy in a separate task.
    fn send(mut self, body: Bytes) {
        let Some(permit) = self.permit.take() else { return };
        if !body.is_empty() {
            self.request.body = RequestBody::new(Full::new(body));
        }
        let tasks = self.shared.tasks.clone();
        tasks.spawn_until_cancelled(TASK, async move { self.exchange(permit).await });
    }

    async fn exchange(mut self, permit: Permit) {
        let limits = &self.shared.limits;
        let (time, max_bytes) = (limits.mirror_timeout, limits.mirror_answer_bytes);
        let outcome = timeout(time, async {
            let answer = permit
                .transport()
                .clone()
                .send(&mut self.request)
                .await
                .map_err(|error| error.to_string())?;
            let body = ResponseBody::new(answer.body, answer.carrier, permit, Some(answer.target));
            discard(body, max_bytes).await
        });
        match outcome.await.unwrap_or_else(|_| Err(format!("no complete response within {time:?}"))) {
            Ok(()) => {
                self.counts.record_sent();
                self.shared.metrics.record_mirrored("sent");
            }
            Err(error) => {
                self.shared.metrics.record_mirrored("failed");
                tracing::debug!(error, "request to a mirror failed");
                if self.counts.record_failure(error) {
                    tracing::warn!("requests to a mirror fail: `portico explain` shows the reason");
                }
            }
        }
    }
}

impl Drop for CopiedRequest {
    fn drop(&mut self) {
        if self.permit.is_some() {
            self.shared.metrics.record_mirrored("dropped");
            self.counts.record_dropped();
        }
    }
}

/// Reads a response to its end, so that its connection can be reused; the connection of a longer response is closed.
async fn discard(mut body: ResponseBody, max_bytes: u64) -> Result<(), String> {
    let mut remaining = max_bytes;
    while let Some(frame) = poll_fn(|cx| body.poll_frame(cx)).await {
        let frame = frame.map_err(|error| error.to_string())?;
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match remaining.checked_sub(length) {
            Some(rest) => remaining = rest,
            None => return Ok(()),
        }
    }
    Ok(())
}
