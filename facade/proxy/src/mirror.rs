//! Copies of a share of a backend's requests for another backend, the mirror.
//!
//! What the mirror answers counts for nothing, and no request waits for it: a copy is sent by a task of its own, at most so many at a
//! time; one more is dropped. Who asks is named to a mirror that is verified, as the backend is, and to no other.

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

use crate::mirror_counts::{MirrorCounts, Mirrored};
use crate::outgoing::Outgoing;
use crate::request_body::RequestBody;
use crate::transport::{
    AnswerBody, Permit, Shared, Transport, TransportError, TransportKey, Transports, changes_nothing,
};
use tee::Tee;

/// Says that a request is a copy. A copy is not copied again: a mirror may be this server.
const COPY: HeaderName = HeaderName::from_static("portico-mirrored");
/// The name of a copy's task.
const TASK: &str = "proxy-mirrored-request";

/// The mirror of one route's backend.
#[derive(Debug)]
pub(crate) struct Mirror {
    policy: route::Mirror,
    transport: Arc<Transport>,
    counts: Arc<MirrorCounts>,
    /// Whether it may know who asks.
    identified: bool,
    /// Requests that could have been copied.
    seen: AtomicUsize,
}

/// A request for the mirror that is not sent yet. One that is dropped counts as that.
struct CopiedRequest {
    request: Outgoing<'static>,
    permit: Option<Permit>,
    counts: Arc<MirrorCounts>,
    shared: Arc<Shared>,
}

impl Mirror {
    /// Of this route, where it has one.
    pub(crate) fn of(
        route: &Route,
        ca: Option<&Bytes>,
        shared: &Arc<Shared>,
        transports: &Transports,
    ) -> Option<Result<Self, TransportError>> {
        let backend = route.backend.as_ref()?;
        let policy = backend.policy.mirror.clone()?;
        let key = TransportKey::to_mirror(&route.name, backend, &policy, &shared.limits);
        let identified = backend.trust != Trust::Insecure;
        Some(transports.get(shared, key, None, ca).map(|transport| {
            let counts = transport.mirror_counts();
            Self { policy, transport, counts, identified, seen: AtomicUsize::new(0) }
        }))
    }

    /// What was sent there.
    pub(crate) fn mirrored(&self) -> Mirrored {
        self.counts.read()
    }

    /// Copies a request that is about to be sent, if it is one of those that are copied.
    pub(crate) fn copy(&self, request: &mut Outgoing<'_>, shared: &Arc<Shared>) {
        let most = usize::try_from(self.policy.max_body_bytes).unwrap_or(usize::MAX);
        let is_wanted = most > 0 || changes_nothing(request);
        if !is_wanted || request.headers.contains_key(COPY) || !self.is_in_share() {
            return;
        }
        let too_long = request.body.size_hint().lower() > u64::from(self.policy.max_body_bytes);
        let permit = if too_long { None } else { self.transport.admit().ok() };
        let Some(permit) = permit else {
            shared.metrics.mirrored("dropped");
            return self.counts.dropped();
        };
        let mut copy = CopiedRequest {
            request: request.copied(self.identified),
            permit: Some(permit),
            counts: self.counts.clone(),
            shared: shared.clone(),
        };
        copy.request.headers.insert(COPY, HeaderValue::from_static("true"));
        if request.body.is_end_stream() || request.body.size_hint().exact() == Some(0) {
            copy.send(Bytes::new());
        } else {
            let body = std::mem::take(&mut request.body);
            request.body = body.through(|body| Tee::new(body, most, move |whole| copy.send(whole)));
        }
    }

    /// Spreads the share evenly: of each hundred requests in a row as many as the policy says.
    fn is_in_share(&self) -> bool {
        let percent = usize::try_from(self.policy.percent).unwrap_or(100);
        let seen = self.seen.fetch_add(1, Ordering::Relaxed) % 100;
        (seen * percent) % 100 < percent
    }
}

impl CopiedRequest {
    /// Sends it, in a task of its own.
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
        let (time, most) = (limits.mirror_timeout, limits.mirror_answer_bytes);
        let outcome = timeout(time, async {
            let answer = permit
                .transport()
                .clone()
                .send(&mut self.request)
                .await
                .map_err(|error| error.to_string())?;
            let body = AnswerBody::new(answer.body, answer.carrier, permit, Some(answer.target));
            discard(body, most).await
        });
        match outcome.await.unwrap_or_else(|_| Err(format!("no whole answer within {time:?}"))) {
            Ok(()) => {
                self.counts.sent();
                self.shared.metrics.mirrored("sent");
            }
            Err(error) => {
                self.shared.metrics.mirrored("failed");
                tracing::debug!(error, "request to a mirror failed");
                if self.counts.failed(error) {
                    tracing::warn!("requests to a mirror fail: `portico explain` shows the reason");
                }
            }
        }
    }
}

impl Drop for CopiedRequest {
    fn drop(&mut self) {
        if self.permit.is_some() {
            self.shared.metrics.mirrored("dropped");
            self.counts.dropped();
        }
    }
}

/// Reads an answer to its end, so that its connection can be used again; a longer one ends with its connection.
async fn discard(mut body: AnswerBody, most: u64) -> Result<(), String> {
    let mut left = most;
    while let Some(frame) = poll_fn(|cx| body.poll_frame(cx)).await {
        let frame = frame.map_err(|error| error.to_string())?;
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return Ok(()),
        }
    }
    Ok(())
}
