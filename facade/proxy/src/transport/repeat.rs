//! Retries of safe requests according to the backend's policy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{Either, select};
use http::{HeaderMap, Method};
use http_body::Body as _;
use portico_kit::backoff::{Backoff, Policy};
use tokio::time::timeout;

use super::exchange::{Answer, is_failure};
use super::registry::Transport;
use super::send_error::SendError;
use crate::outgoing::Outgoing;

/// Backoff between retries.
const PAUSE: Policy = Policy::new(Duration::from_millis(25), Duration::from_millis(250), 2.0, 1.0);
/// Requests to one backend that may be retried at the same time, however few are in flight.
///
/// Limit (Backends): the failure is returned without a retry.
const MIN_REPEATING: usize = 3;
/// Requests in flight for each one that may be retried.
///
/// An overloaded backend does not get twice the load.
///
/// Limit (Backends): the failure is returned without a retry.
const SHARE: usize = 5;

/// Guard that counts one request that is being retried.
struct Repeating<'a>(&'a AtomicUsize);

impl<'a> Repeating<'a> {
    /// Returns `None` if too many requests are being retried already.
    fn begin(count: &'a AtomicUsize, in_flight: usize) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let this = Self(count);
        (before < MIN_REPEATING.max(in_flight / SHARE)).then_some(this)
    }
}

impl Drop for Repeating<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns true if a request is safe: repeating it has no effect.
pub(crate) fn changes_nothing(request: &Outgoing<'_>) -> bool {
    matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS) && request.body.is_end_stream()
}

/// Returns true if the outcome is final, so that no retry could be better.
fn is_good(outcome: &Result<Answer, SendError>) -> bool {
    outcome.as_ref().is_ok_and(|answer| !is_failure(answer.head.status))
}

impl Transport {
    /// Sends a request, with retries if the policy allows them.
    pub(crate) async fn send(&self, request: &mut Outgoing<'_>) -> Result<Answer, SendError> {
        let policy = &self.key.policy;
        let is_plain =
            policy.retries == 0 && policy.per_try_timeout.is_none() && policy.hedge_after.is_none();
        if is_plain || !changes_nothing(request) {
            return self.send_once(request, None, (self.turns.next(), 0)).await;
        }
        // Boxed because few policies have retries.
        Box::pin(self.send_repeatedly(request)).await
    }

    /// Sends a request, and a second one to the next address if there is no response in time. The first
    /// successful response is used;
    /// the other request is canceled.
    async fn send_hedged(
        &self,
        request: &mut Outgoing<'_>,
        kept: &HeaderMap,
        after: Duration,
    ) -> Result<Answer, SendError> {
        let per_try = self.key.policy.per_try_timeout;
        let mut copy = request.again(kept);
        let turn = self.turns.next();
        let mut first = Box::pin(self.send_once(request, per_try, (turn, 0)));
        if let Ok(outcome) = timeout(after, first.as_mut()).await {
            return outcome;
        }
        let hedging = Repeating::begin(&self.repeating, self.in_flight());
        let Some(_hedging) = hedging.and_then(|hedging| Some((hedging, self.admit_copy()?))) else {
            self.shared.metrics.repeated("too_many");
            return first.await;
        };
        self.shared.metrics.repeated("hedged");
        let second = Box::pin(self.send_once(&mut copy, per_try, (turn, 1)));
        match select(first, second).await {
            Either::Left((outcome, _)) | Either::Right((outcome, _)) if is_good(&outcome) => outcome,
            Either::Left((_, second)) => second.await,
            Either::Right((_, first)) => first.await,
        }
    }

    /// Sends a safe request until it succeeds, at most as often as the policy allows.
    pub(super) async fn send_repeatedly(&self, request: &mut Outgoing<'_>) -> Result<Answer, SendError> {
        let policy = &self.key.policy;
        let kept = request.keep();
        let (mut pause, mut repeating) = (Backoff::new(PAUSE), None);
        for left in (0..=policy.retries).rev() {
            let outcome = match policy.hedge_after {
                Some(after) => self.send_hedged(request, &kept, after).await,
                None => self.send_once(request, policy.per_try_timeout, (self.turns.next(), 0)).await,
            };
            let reason = match &outcome {
                Ok(answer) if is_failure(answer.head.status) => "status",
                Err(SendError::Dial { .. }) => "dial",
                Err(SendError::Http(_)) => "broken",
                Ok(_) | Err(SendError::Open { .. } | SendError::Body(_)) => return outcome,
            };
            if left == 0 {
                return outcome;
            }
            if repeating.is_none() {
                repeating = Repeating::begin(&self.repeating, self.in_flight());
            }
            if repeating.is_none() {
                self.shared.metrics.repeated("too_many");
                return outcome;
            }
            self.shared.metrics.repeated(reason);
            drop(outcome);
            tokio::time::sleep(pause.next_wait()).await;
            request.restore(&kept);
        }
        Err(SendError::Http("the request was not sent".to_owned()))
    }
}
