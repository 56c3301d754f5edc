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
use super::member::{Member, MemberState};
use super::member_states::MemberStates;
use super::metrics::Metrics;
use super::selection::{self, MemberStatus};
use super::services::ControlServices;

/// Number of pings within the time after which a silent control service counts as lost.
const PINGS_PER_SILENCE: u32 = 4;
/// Minimum pause between two pings, however many calls fail.
const MIN_PING_PAUSE: Duration = Duration::from_millis(5);
/// Delay of this process above which a missing response does not show that the control service is late.
const MAX_OWN_DELAY: Duration = Duration::from_millis(100);
/// Time that the first choice of a control service waits for slow ones.
///
/// Limit (Facades and control services): it chooses among those that responded.
const FIRST_CHOICE_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for which a control service must have served before the facade returns to it.
const RETURN_AFTER: Duration = Duration::from_secs(10);
/// Interval between checks for a return.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

async fn ping_until_canceled(services: ControlServices, member: Arc<Member>) {
    let silence = services.max_silence();
    loop {
        let begin = Instant::now();
        let answer = timeout(silence, member.probe()).await;
        let took = begin.elapsed();
        match answer {
            Err(_) if took > silence + MAX_OWN_DELAY => {}
            Err(_) => services.set_state(&member, MemberState::Lost),
            Ok(answer) => {
                if answer.is_ok() {
                    services.count(|metrics| metrics.set_round_trip(&member, member.record_round_trip(took)));
                }
                let state = services.member_state(&member, answer);
                services.set_state(&member, state);
            }
        }
        sleep(MIN_PING_PAUSE).await;
        tokio::select! {
            () = sleep(silence / PINGS_PER_SILENCE) => {}
            () = member.wait_until_suspected() => {}
        }
    }
}

impl ControlServices {
    /// Starts pings and selection in these tasks, and registers the metrics.
    pub fn start(&self, registry: &Registry, tasks: &TaskSet) {
        if self.is_single() {
            return;
        }
        self.set_metrics(Metrics::new(registry));
        for member in self.members() {
            let pings = ping_until_canceled(self.clone(), Arc::clone(member));
            tasks.spawn_until_cancelled("control-service-pings", pings);
        }
        tasks.spawn_until_cancelled("control-service-choice", choose_until_canceled(self.clone()));
    }

    /// Derives the state of a control service from its response to a ping.
    fn member_state(&self, member: &Member, answer: Result<PingResponse, tonic::Status>) -> MemberState {
        let PingResponse { version, serving, draining, .. } = match answer {
            Ok(answer) => answer,
            // A control service of an earlier release does not report its state.
            Err(status) if status.code() == Code::Unimplemented => {
                member.record_answer();
                return MemberState::Serving;
            }
            Err(status) if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) => {
                let error = CallReason(&status);
                tracing::warn!(server = member.name, %error, "control service refused this facade");
                return MemberState::OtherStore;
            }
            Err(status) => {
                tracing::debug!(server = member.name, error = %CallReason(&status), "control service unreachable");
                return MemberState::Lost;
            }
        };
        let version = version.map(Version::from).unwrap_or_default();
        match (self.check_store(member, &version), draining, serving) {
            (false, ..) => MemberState::OtherStore,
            (true, true, _) => MemberState::Draining,
            (true, false, true) => MemberState::Serving,
            (true, false, false) => MemberState::NotReady,
        }
    }

    /// Sets the state of a control service.
    pub(crate) fn set_state(&self, member: &Member, state: MemberState) {
        if !self.change_states(|states| states.set_state(member.index, state)) {
            return;
        }
        match state {
            MemberState::Lost => {
                tracing::warn!(server = member.name, "control service lost");
                // Existing connections may be dead without having been closed.
                member.transport.forget_connections();
            }
            MemberState::OtherStore => {
                tracing::error!(server = member.name, "control service ignored: another store");
                self.count(|metrics| metrics.count_refused(member));
            }
            _ => {
                tracing::info!(server = member.name, state = state.as_str(), "control service state changed")
            }
        }
    }

    fn member_statuses(&self, states: &MemberStates) -> Vec<MemberStatus> {
        let status = |(member, state): (&Arc<Member>, &MemberState)| MemberStatus {
            state: *state,
            round_trip: member.round_trip(),
        };
        self.members().iter().zip(states.states()).map(status).collect()
    }
}

async fn choose_until_canceled(services: ControlServices) {
    let mut changes = services.subscribe();
    let mut chooser = Chooser::new(Instant::now());
    loop {
        let states = changes.borrow_and_update().clone();
        let candidates = services.member_statuses(&states);
        if let Some((next, reason)) = chooser.decide(Instant::now(), states.current(), &candidates) {
            let (previous, selected) = (&services.members()[states.current()], &services.members()[next]);
            if previous.index != selected.index {
                tracing::info!(
                    from = previous.name,
                    to = selected.name,
                    reason,
                    last_response = previous.silence().map(format_duration),
                    "switched to another control service"
                );
                services.count(|metrics| metrics.count_switch(reason));
            }
            services.change_states(|states| {
                states.set_current(next);
                true
            });
        }
        let members = || services.members().iter().map(|member| &**member);
        services.count(|metrics: &Metrics| metrics.update(members(), &services.subscribe().borrow()));
        let poll_interval = if chooser.has_chosen { POLL_INTERVAL } else { FIRST_CHOICE_TIMEOUT / 4 };
        tokio::select! {
            // The sender lives as long as `services`.
            _ = changes.changed() => {}
            () = sleep(poll_interval) => {}
        }
    }
}

/// Decides on the control service to use, and remembers since when another one has been better.
struct Chooser {
    start: Instant,
    has_chosen: bool,
    better: Option<(usize, Instant)>,
}

impl Chooser {
    fn new(start: Instant) -> Self {
        Self { start, has_chosen: false, better: None }
    }

    /// Returns the control service to switch to, and the reason; `None` to keep the current one.
    fn decide(
        &mut self,
        now: Instant,
        current: usize,
        candidates: &[MemberStatus],
    ) -> Option<(usize, &'static str)> {
        let best = selection::best(candidates)?;
        if !self.has_chosen {
            let all_known = candidates.iter().all(|candidate| candidate.state != MemberState::Unknown);
            if !all_known && now.duration_since(self.start) < FIRST_CHOICE_TIMEOUT {
                return None;
            }
            self.has_chosen = true;
            return Some((best, "start"));
        }
        if selection::is_worse(candidates[current].state, candidates[best].state) {
            self.better = None;
            return Some((best, candidates[current].state.as_str()));
        }
        if best == current || !selection::is_nearer(candidates, best, current) {
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

    fn status(state: MemberState, millis: u64) -> MemberStatus {
        MemberStatus { state, round_trip: Some(Duration::from_millis(millis)) }
    }

    /// A chooser that has made its first choice.
    fn chooser(begin: Instant) -> Chooser {
        Chooser { has_chosen: true, ..Chooser::new(begin) }
    }

    #[test]
    fn the_first_choice_waits_briefly_for_all_responses() {
        let begin = Instant::now();
        let mut chooser = Chooser::new(begin);
        let candidates = [status(MemberState::Unknown, 0), status(MemberState::Serving, 1)];
        assert_eq!(chooser.decide(begin, 0, &candidates), None);
        assert_eq!(chooser.decide(begin + FIRST_CHOICE_TIMEOUT, 0, &candidates), Some((1, "start")));
    }

    #[test]
    fn a_control_service_that_does_not_serve_is_replaced_at_once() {
        let begin = Instant::now();
        for state in
            [MemberState::Lost, MemberState::Draining, MemberState::NotReady, MemberState::OtherStore]
        {
            let candidates = [status(state, 0), status(MemberState::Serving, 50)];
            assert_eq!(chooser(begin).decide(begin, 0, &candidates), Some((1, state.as_str())));
        }
        let all_lost = [status(MemberState::Lost, 0), status(MemberState::Lost, 0)];
        assert_eq!(chooser(begin).decide(begin, 0, &all_lost), None);
    }

    #[test]
    fn the_facade_returns_to_the_preferred_control_service_after_a_while() {
        let begin = Instant::now();
        let mut chooser = chooser(begin);
        let (up, down) = (
            [status(MemberState::Serving, 0); 2],
            [status(MemberState::Lost, 0), status(MemberState::Serving, 0)],
        );
        assert_eq!(chooser.decide(begin, 1, &up), None);
        assert_eq!(chooser.decide(begin + RETURN_AFTER / 2, 1, &down), None);
        assert_eq!(chooser.decide(begin + RETURN_AFTER, 1, &up), None, "it was lost in the meantime");
        assert_eq!(chooser.decide(begin + RETURN_AFTER * 2, 1, &up), Some((0, "preferred")));
    }
}
