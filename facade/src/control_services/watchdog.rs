//! Pings all control services and selects the one to use.
//!
//! A control service that does not serve is replaced at once by one that does. The facade returns to a nearer one, or to an
//! earlier one in the order, only after it has served for a while: calls in progress are not moved.

use std::sync::Arc;
use std::time::Duration;

use portico_gostd::time::format_duration;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_proto::config::PingResponse;
use portico_proto::convert::Version;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use super::call_reason::CallReason;
use super::choice::{self, Candidate};
use super::in_use::InUse;
use super::member::{Member, State};
use super::metrics::Metrics;
use super::services::ControlServices;

/// Number of pings within the time after which a silent control service counts as lost.
const PINGS: u32 = 4;
/// Minimum pause between two pings, however many calls fail.
const LEAST_PAUSE: Duration = Duration::from_millis(5);
/// Delay of this process above which a missing response does not show that the control service is late.
const OWN_DELAY: Duration = Duration::from_millis(100);
/// Time that the first choice of a control service waits for slow ones.
///
/// Limit (Facades and control services): it chooses among those that responded.
const FIRST_CHOICE: Duration = Duration::from_millis(500);
/// Time for which a control service must have served before the facade returns to it.
const RETURN_AFTER: Duration = Duration::from_secs(10);
/// Interval between checks for a return.
const LOOK: Duration = Duration::from_secs(1);

async fn ping(services: ControlServices, member: Arc<Member>) {
    let silence = services.silence();
    loop {
        let begin = Instant::now();
        let answer = timeout(silence, member.sign_of_life()).await;
        let took = begin.elapsed();
        match answer {
            Err(_) if took > silence + OWN_DELAY => {}
            Err(_) => services.set_state(&member, State::Lost),
            Ok(answer) => {
                if answer.is_ok() {
                    services.count(|metrics| metrics.round_trip(&member, member.answered_in(took)));
                }
                let state = services.state_by(&member, answer);
                services.set_state(&member, state);
            }
        }
        sleep(LEAST_PAUSE).await;
        tokio::select! {
            () = sleep(silence / PINGS) => {}
            () = member.suspected() => {}
        }
    }
}

impl ControlServices {
    /// Starts pings and selection in these tasks, and registers the metrics.
    pub fn start(&self, registry: &Registry, tasks: &TaskSet) {
        if self.is_one() {
            return;
        }
        self.count_in(Metrics::new(registry));
        for member in self.members() {
            let pings = ping(self.clone(), Arc::clone(member));
            tasks.spawn_until_cancelled("control-service-pings", pings);
        }
        tasks.spawn_until_cancelled("control-service-choice", choose(self.clone()));
    }

    /// Derives the state of a control service from its response to a ping.
    fn state_by(&self, member: &Member, answer: Result<PingResponse, tonic::Status>) -> State {
        let PingResponse { version, serving, draining, .. } = match answer {
            Ok(answer) => answer,
            // A control service of an earlier release does not report its state.
            Err(status) if status.code() == Code::Unimplemented => {
                member.record_answer();
                return State::Serving;
            }
            Err(status) if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) => {
                let error = CallReason(&status);
                tracing::warn!(server = member.name, %error, "control service refused this facade");
                return State::Foreign;
            }
            Err(status) => {
                tracing::debug!(server = member.name, error = %CallReason(&status), "control service unreachable");
                return State::Lost;
            }
        };
        let version = version.map(Version::from).unwrap_or_default();
        match (self.is_of_the_store(member, &version), draining, serving) {
            (false, ..) => State::Foreign,
            (true, true, _) => State::Draining,
            (true, false, true) => State::Serving,
            (true, false, false) => State::NotReady,
        }
    }

    /// Sets the state of a control service.
    pub(crate) fn set_state(&self, member: &Member, state: State) {
        if !self.change(|now| now.set_state(member.index, state)) {
            return;
        }
        match state {
            State::Lost => {
                tracing::warn!(server = member.name, "control service lost");
                // Existing connections may be dead without having been closed.
                member.transport.forget_connections();
            }
            State::Foreign => {
                tracing::error!(server = member.name, "control service ignored: another store");
                self.count(|metrics| metrics.refused(member));
            }
            _ => {
                tracing::info!(server = member.name, state = state.as_str(), "control service state changed")
            }
        }
    }

    fn candidates(&self, now: &InUse) -> Vec<Candidate> {
        let of = |(member, state): (&Arc<Member>, &State)| Candidate {
            state: *state,
            round_trip: member.round_trip(),
        };
        self.members().iter().zip(now.states()).map(of).collect()
    }
}

async fn choose(services: ControlServices) {
    let mut changes = services.subscribe();
    let mut chooser = Chooser::new(Instant::now());
    loop {
        let now = changes.borrow_and_update().clone();
        let candidates = services.candidates(&now);
        if let Some((next, reason)) = chooser.decide(Instant::now(), now.current(), &candidates) {
            let (left, taken) = (&services.members()[now.current()], &services.members()[next]);
            if left.index != taken.index {
                tracing::info!(
                    from = left.name,
                    to = taken.name,
                    reason,
                    last_response = left.silence().map(format_duration),
                    "switched to another control service"
                );
                services.count(|metrics| metrics.moved(reason));
            }
            services.change(|now| {
                now.move_to(next);
                true
            });
        }
        let members = || services.members().iter().map(|member| &**member);
        services.count(|metrics: &Metrics| metrics.show(members(), &services.subscribe().borrow()));
        let next_look = if chooser.chosen { LOOK } else { FIRST_CHOICE / 4 };
        tokio::select! {
            // The sender lives as long as `services`.
            _ = changes.changed() => {}
            () = sleep(next_look) => {}
        }
    }
}

/// Decides on the control service to use, and remembers since when another one has been better.
struct Chooser {
    begin: Instant,
    chosen: bool,
    better: Option<(usize, Instant)>,
}

impl Chooser {
    fn new(begin: Instant) -> Self {
        Self { begin, chosen: false, better: None }
    }

    /// Returns the control service to switch to, and the reason; `None` to keep the current one.
    fn decide(
        &mut self,
        now: Instant,
        current: usize,
        candidates: &[Candidate],
    ) -> Option<(usize, &'static str)> {
        let best = choice::best(candidates)?;
        if !self.chosen {
            let all_known = candidates.iter().all(|one| one.state != State::Unknown);
            if !all_known && now.duration_since(self.begin) < FIRST_CHOICE {
                return None;
            }
            self.chosen = true;
            return Some((best, "start"));
        }
        if choice::is_worse(candidates[current].state, candidates[best].state) {
            self.better = None;
            return Some((best, candidates[current].state.as_str()));
        }
        if best == current || !choice::is_nearer(candidates, best, current) {
            self.better = None;
            return None;
        }
        let since = match self.better {
            Some((index, since)) if index == best => since,
            _ => self.better.insert((best, now)).1,
        };
        if now.duration_since(since) < RETURN_AFTER {
            return None;
        }
        self.better = None;
        Some((best, "preferred"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(state: State, millis: u64) -> Candidate {
        Candidate { state, round_trip: Some(Duration::from_millis(millis)) }
    }

    /// A chooser that has made its first choice.
    fn chooser(begin: Instant) -> Chooser {
        Chooser { chosen: true, ..Chooser::new(begin) }
    }

    #[test]
    fn the_first_choice_waits_a_moment_for_all() {
        let begin = Instant::now();
        let mut chooser = Chooser::new(begin);
        let known = [one(State::Unknown, 0), one(State::Serving, 1)];
        assert_eq!(chooser.decide(begin, 0, &known), None);
        assert_eq!(chooser.decide(begin + FIRST_CHOICE, 0, &known), Some((1, "start")));
    }

    #[test]
    fn one_that_does_not_serve_is_left_at_once() {
        let begin = Instant::now();
        for state in [State::Lost, State::Draining, State::NotReady, State::Foreign] {
            let known = [one(state, 0), one(State::Serving, 50)];
            assert_eq!(chooser(begin).decide(begin, 0, &known), Some((1, state.as_str())));
        }
        let nobody = [one(State::Lost, 0), one(State::Lost, 0)];
        assert_eq!(chooser(begin).decide(begin, 0, &nobody), None);
    }

    #[test]
    fn the_preferred_one_is_returned_to_after_it_has_served_for_a_while() {
        let begin = Instant::now();
        let mut chooser = chooser(begin);
        let (up, down) = ([one(State::Serving, 0); 2], [one(State::Lost, 0), one(State::Serving, 0)]);
        assert_eq!(chooser.decide(begin, 1, &up), None);
        assert_eq!(chooser.decide(begin + RETURN_AFTER / 2, 1, &down), None);
        assert_eq!(chooser.decide(begin + RETURN_AFTER, 1, &up), None, "it was away in between");
        assert_eq!(chooser.decide(begin + RETURN_AFTER * 2, 1, &up), Some((0, "preferred")));
    }
}
