//! Retries of safe requests according to the backend's policy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{Either, select};
use http::{HeaderMap, Method};
use http_body::Body as _;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use tokio::time::timeout;

use super::exchange::{BackendResponse, is_failure};
use super::registry::Transport;
use super::send_error::SendError;
use crate::outgoing_request::OutgoingRequest;

/// Backoff between retries.
const RETRY_BACKOFF: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(25), Duration::from_millis(250), 2.0, 1.0);
/// Requests to one backend that may be retried at the same time, however few are in flight.
///
/// Limit (Backends): the failure is returned without a retry.
const MIN_RETRYING: usize = 3;
/// Requests in flight for each one that may be retried.
///
/// An overloaded backend does not get twice the load.
///
/// Limit (Backends): the failure is returned without a retry.
const REQUESTS_PER_RETRY: usize = 5;

/// Guard that counts one request that is being retried.
struct RetryPermit<'a>(&'a AtomicUsize);

impl<'a> RetryPermit<'a> {
    /// Returns `None` if too many requests are being retried already.
    fn acquire(count: &'a AtomicUsize, in_flight: usize) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let this = Self(count);
        (before < MIN_RETRYING.max(in_flight / REQUESTS_PER_RETRY)).then_some(this)
    }
}

impl Drop for RetryPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns true if a request is safe: repeating it has no effect.
pub(crate) fn is_safe(request: &OutgoingRequest<'_>) -> bool {
    matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS) && request.body.is_end_stream()
}

/// Returns true if the outcome is final, so that no retry could be better.
fn is_success(outcome: &Result<BackendResponse, SendError>) -> bool {
    outcome.as_ref().is_ok_and(|answer| !is_failure(answer.head.status))
}

impl Transport {
    /// Sends a request, with retries if the policy allows them.
    pub(crate) async fn send(&self, request: &mut OutgoingRequest<'_>) -> Result<BackendResponse, SendError> {
        let policy = &self.key.policy;
        let is_plain =
            policy.retries == 0 && policy.per_try_timeout.is_none() && policy.hedge_after.is_none();
        if is_plain || !is_safe(request) {
            return self.send_once(request, None, (self.rotation.next(), 0)).await;
        }
        // Boxed because few policies have retries.
        Box::pin(self.send_with_retries(request)).await
    }

    /// Sends a request, and a second one to the next address if there is no response in time. The first successful response is
    /// used; the other request is canceled.
    async fn send_hedged(
        &self,
        request: &mut OutgoingRequest<'_>,
        saved_headers: &HeaderMap,
        after: Duration,
    ) -> Result<BackendResponse, SendError> {
        let per_try = self.key.policy.per_try_timeout;
        let mut copy = request.repeat(saved_headers);
        let turn = self.rotation.next();
        let mut first = Box::pin(self.send_once(request, per_try, (turn, 0)));
        if let Ok(outcome) = timeout(after, first.as_mut()).await {
            return outcome;
        }
        let hedging = RetryPermit::acquire(&self.retrying, self.in_flight());
        let Some(_hedging) = hedging.and_then(|hedging| Some((hedging, self.admit_copy()?))) else {
            self.shared.metrics.record_retry("too_many");
            return first.await;
        };
        self.shared.metrics.record_retry("hedged");
        let second = Box::pin(self.send_once(&mut copy, per_try, (turn, 1)));
        match select(first, second).await {
            Either::Left((outcome, _)) | Either::Right((outcome, _)) if is_success(&outcome) => outcome,
            Either::Left((_, second)) => second.await,
            Either::Right((_, first)) => first.await,
        }
    }

    /// Sends a safe request until it succeeds, at most as often as the policy allows.
    pub(super) async fn send_with_retries(
        &self,
        request: &mut OutgoingRequest<'_>,
    ) -> Result<BackendResponse, SendError> {
        let policy = &self.key.policy;
        let saved_headers = request.save_headers();
        let (mut pause, mut retry_permit) = (Backoff::new(RETRY_BACKOFF), None);
        for attempts_left in (0..=policy.retries).rev() {
            let outcome = match policy.hedge_after {
                Some(after) => self.send_hedged(request, &saved_headers, after).await,
                None => self.send_once(request, policy.per_try_timeout, (self.rotation.next(), 0)).await,
            };
            let reason = match &outcome {
                Ok(answer) if is_failure(answer.head.status) => "status",
                Err(SendError::Dial { .. }) => "dial",
                Err(SendError::Http(_)) => "broken",
                Ok(_) | Err(SendError::Open { .. } | SendError::Body(_)) => return outcome,
            };
            if attempts_left == 0 {
                return outcome;
            }
            if retry_permit.is_none() {
                retry_permit = RetryPermit::acquire(&self.retrying, self.in_flight());
            }
            if retry_permit.is_none() {
                self.shared.metrics.record_retry("too_many");
                return outcome;
            }
            self.shared.metrics.record_retry(reason);
            drop(outcome);
            tokio::time::sleep(pause.next_wait()).await;
            request.restore(&saved_headers);
        }
        Err(SendError::Http("the request was not sent".to_owned()))
    }
}
