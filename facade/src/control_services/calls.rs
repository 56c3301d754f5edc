//! Calls that are repeated at another control service when theirs is lost.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};

use super::failures::{is_service_lost, lost_status, was_never_received};
use super::member::Member;
use super::metrics::Metrics;
use super::services::ControlServices;

/// Time that a read waits while no control service is available, unless its own deadline is earlier.
///
/// Limit (Facades and control services): 503.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Delay before the first repetition of a call, unless another control service is in use sooner.
const RETRY_DELAY: Duration = Duration::from_millis(10);
/// Maximum delay between repetitions.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Condition for repeating a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryCondition {
    /// Repeated whenever no response arrived: the call changes nothing.
    Always,
    /// Repeated only if certainly no control service received it.
    IfNeverReceived,
}

impl ControlServices {
    /// Calls the control service in use, and another one if it is lost. Returns the last failure, or the response and its sender.
    /// `attempt` ends by itself after its own timeout; no attempt starts after `deadline`.
    pub(crate) async fn call<T, F, Fut>(
        &self,
        retry_condition: RetryCondition,
        deadline: Option<Instant>,
        attempt: F,
    ) -> Result<(Arc<Member>, T), Status>
    where
        F: Fn(Arc<Member>) -> Fut,
        Fut: Future<Output = Result<T, Status>>,
    {
        let (mut member, mut retry_until, mut pause) = (self.current(), None, RETRY_DELAY);
        loop {
            let answer = {
                // Pinned in place: a future that is passed by value would be stored a second time by its caller.
                let attempt = pin!(attempt(Arc::clone(&member)));
                match self.is_single() {
                    true => attempt.await,
                    false => self.attempt_until_lost(retry_condition, &member, attempt).await,
                }
            };
            let failure = match answer {
                Ok(answer) => return Ok((member, answer)),
                Err(failure) if self.is_single() => return Err(failure),
                Err(failure) => failure,
            };
            let should_retry = match retry_condition {
                RetryCondition::Always => is_service_lost(&failure),
                RetryCondition::IfNeverReceived => was_never_received(&failure),
            };
            let retry_until = *retry_until.get_or_insert_with(|| {
                let wait_limit = Instant::now() + MAX_WAIT;
                deadline.map_or(wait_limit, |deadline| deadline.min(wait_limit))
            });
            if !should_retry || Instant::now() >= retry_until {
                return Err(failure);
            }
            member.suspect();
            self.count(Metrics::count_resent);
            self.pause(&member, pause, retry_until).await;
            pause = (pause * 2).min(MAX_RETRY_DELAY);
            member = self.current();
        }
    }

    /// Makes one attempt. A read is canceled when its control service is lost.
    async fn attempt_until_lost<T>(
        &self,
        retry_condition: RetryCondition,
        member: &Member,
        attempt: Pin<&mut impl Future<Output = Result<T, Status>>>,
    ) -> Result<T, Status> {
        if retry_condition == RetryCondition::IfNeverReceived {
            return attempt.await;
        }
        let read = async {
            self.wait_until_caught_up(member).await?;
            attempt.await
        };
        tokio::select! {
            biased;
            answer = read => answer,
            () = self.until_lost(member) => Err(lost_status("the control service was lost")),
        }
    }

    /// Waits for `pause`, or until another control service is in use.
    async fn pause(&self, member: &Member, pause: Duration, until: Instant) {
        let mut states = self.subscribe();
        let switched = states.wait_for(|current_states| current_states.current() != member.index);
        // Both results end the pause.
        let _switched_or_timeout = timeout_at((Instant::now() + pause).min(until), switched).await;
    }

    /// Waits until reads from a control service show the highest revision that a client has seen. Returns an error on timeout.
    async fn wait_until_caught_up(&self, member: &Member) -> Result<(), Status> {
        let required_revision = self.max_shown_revision();
        if member.known_revision() >= required_revision {
            return Ok(());
        }
        let answer = member.wait_for_revision(required_revision).await;
        match answer {
            Ok(version) => {
                if let Some(version) = version {
                    self.check_store(member, &version);
                }
            }
            // A control service of an earlier release does not report its revision.
            Err(status) if status.code() == Code::Unimplemented => return Ok(()),
            Err(status) => return Err(status),
        }
        match member.known_revision() >= self.max_shown_revision().min(required_revision) {
            true => Ok(()),
            false => Err(lost_status("the control service has not caught up yet")),
        }
    }
}
