//! Calls that are repeated at another control service when theirs is lost.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};

use super::failures::{lost, never_received, was_lost};
use super::member::Member;
use super::metrics::Metrics;
use super::services::ControlServices;

/// Time that a read waits while no control service is available, unless its own deadline is earlier.
///
/// Limit (Facades and control services): 503.
const PATIENCE: Duration = Duration::from_secs(5);
/// Delay before the first repetition of a call, unless another control service is in use sooner.
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum delay between repetitions.
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// Condition for repeating a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
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
        repeat: Repeat,
        deadline: Option<Instant>,
        attempt: F,
    ) -> Result<(Arc<Member>, T), Status>
    where
        F: Fn(Arc<Member>) -> Fut,
        Fut: Future<Output = Result<T, Status>>,
    {
        let (mut member, mut until, mut pause) = (self.current(), None, PAUSE);
        loop {
            let answer = {
                // Pinned in place: a future that is passed by value would be stored a second time by its caller.
                let attempt = pin!(attempt(Arc::clone(&member)));
                match self.is_one() {
                    true => attempt.await,
                    false => self.attempted(repeat, &member, attempt).await,
                }
            };
            let failure = match answer {
                Ok(answer) => return Ok((member, answer)),
                Err(failure) if self.is_one() => return Err(failure),
                Err(failure) => failure,
            };
            let is_again = match repeat {
                Repeat::Always => was_lost(&failure),
                Repeat::IfNeverReceived => never_received(&failure),
            };
            let until = *until.get_or_insert_with(|| {
                let patience = Instant::now() + PATIENCE;
                deadline.map_or(patience, |deadline| deadline.min(patience))
            });
            if !is_again || Instant::now() >= until {
                return Err(failure);
            }
            member.suspect();
            self.count(Metrics::resent);
            self.pause(&member, pause, until).await;
            pause = (pause * 2).min(MAX_PAUSE);
            member = self.current();
        }
    }

    /// Makes one attempt. A read is canceled when its control service is lost.
    async fn attempted<T>(
        &self,
        repeat: Repeat,
        member: &Member,
        attempt: Pin<&mut impl Future<Output = Result<T, Status>>>,
    ) -> Result<T, Status> {
        if repeat == Repeat::IfNeverReceived {
            return attempt.await;
        }
        let read = async {
            self.catches_up(member).await?;
            attempt.await
        };
        tokio::select! {
            biased;
            answer = read => answer,
            () = self.lost(member) => Err(lost("the control service was lost")),
        }
    }

    /// Waits for `pause`, or until another control service is in use.
    async fn pause(&self, member: &Member, pause: Duration, until: Instant) {
        let mut in_use = self.subscribe();
        let moved = in_use.wait_for(|now| now.current() != member.index);
        // Both results end the pause.
        let _moved_or_over = timeout_at((Instant::now() + pause).min(until), moved).await;
    }

    /// Waits until reads from a control service show the highest revision that was shown before. Returns an error on timeout.
    async fn catches_up(&self, member: &Member) -> Result<(), Status> {
        let shown = self.shown();
        if member.reached() >= shown {
            return Ok(());
        }
        let answer = member.ping(shown).await;
        match answer {
            Ok(version) => {
                if let Some(version) = version {
                    self.is_of_the_store(member, &version);
                }
            }
            // A control service of an earlier release does not report its revision.
            Err(status) if status.code() == Code::Unimplemented => return Ok(()),
            Err(status) => return Err(status),
        }
        match member.reached() >= self.shown().min(shown) {
            true => Ok(()),
            false => Err(lost("the control service has not caught up yet")),
        }
    }
}
