//! Decides the next step of an election from the lease and its candidates (upstream's `reconcileElectionStep`). Pure.
//!
//! There is no state between steps: the candidates contain the times of pings and renewals.

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{GroupVersion, Object, time};

use super::candidate::{self, Candidate, OLDEST_EMULATION_VERSION, VALID_SECONDS};

/// Time that candidates have to respond (`electionDuration`).
const ELECTION_DURATION: SignedDuration = SignedDuration::from_secs(5);
/// `leaseDurationSeconds` of leases created by this controller.
const LEASE_SECONDS: i32 = 5;

/// Next step of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElectionStep {
    /// Wait for a change.
    Idle,
    /// Wait for the expiry of the lease or for responses of candidates.
    Wait,
    /// Ping these candidates.
    Ping(Vec<String>),
    /// Write this result into the lease.
    Elect(ElectionResult),
}

/// Result of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ElectionResult {
    pub(super) strategy: String,
    /// New holder; `None` if another component implements the strategy.
    pub(super) holder: Option<String>,
}

/// Failure of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ElectionFailure {
    pub(super) reason: String,
    /// True if a retry may succeed without a change.
    pub(super) is_retryable: bool,
}

/// Decides the next step for a lease. `candidates` are the valid ones.
pub(super) fn step(
    candidates: &[Candidate],
    lease: Option<&Object>,
    now: Timestamp,
) -> Result<ElectionStep, ElectionFailure> {
    if candidates.is_empty() {
        return Ok(ElectionStep::Idle);
    }
    let failure = |is_retryable| move |reason: String| ElectionFailure { reason, is_retryable };
    if !is_needed(candidates, lease, now).map_err(failure(true))? {
        return Ok(ElectionStep::Wait);
    }
    if let Some(waiting) = ping_or_wait(candidates, now) {
        return Ok(waiting);
    }
    let available: Vec<&Candidate> = candidates.iter().filter(|c| is_recent(c.renew_time, now)).collect();
    if available.is_empty() {
        return Err(failure(false)("no available candidates".to_owned()));
    }
    let strategy = candidate::strategy(&available).map_err(failure(false))?.to_owned();
    let holder = if strategy == OLDEST_EMULATION_VERSION {
        let best = candidate::oldest(available.iter().copied());
        let no_electee = || failure(false)("should not happen, could not find suitable electee".to_owned());
        Some(best.ok_or_else(no_electee)?.name.clone())
    } else {
        None
    };
    Ok(ElectionStep::Elect(ElectionResult { strategy, holder }))
}

/// Returns true if another candidate might have to hold the lease (`electionNeeded`).
fn is_needed(candidates: &[Candidate], lease: Option<&Object>, now: Timestamp) -> Result<bool, String> {
    let Some(lease) = lease else { return Ok(true) };
    let holder = lease.at(&["spec", "holderIdentity"]).str();
    if is_expired(lease, now) || holder.is_empty() {
        return Ok(true);
    }
    let half = SignedDuration::from_secs(VALID_SECONDS / 2);
    if candidates.iter().any(|c| ends_before(c.renew_time, half, now)) {
        return Ok(true);
    }
    let all: Vec<&Candidate> = candidates.iter().collect();
    if candidate::strategy(&all)? != OLDEST_EMULATION_VERSION {
        return Ok(false);
    }
    Ok(candidate::oldest(candidates).is_some_and(|best| best.name != holder))
}

/// Pings candidates without a recent renewal, and waits for those with a recent ping. `None` if neither is necessary.
fn ping_or_wait(candidates: &[Candidate], now: Timestamp) -> Option<ElectionStep> {
    let mut awaits_response = false;
    let mut ping = Vec::new();
    for candidate in candidates {
        if candidate.has_pending_ping() && candidate.ping_time.is_some_and(|pinged| is_recent(pinged, now)) {
            awaits_response = true;
        } else if !is_recent(candidate.renew_time, now) {
            let has_timed_out =
                |pinged| ends_before(pinged, ELECTION_DURATION, now) && !candidate.has_pending_ping();
            if candidate.ping_time.is_none_or(has_timed_out) {
                ping.push(candidate.name.clone());
            }
        }
    }
    match (ping.is_empty(), awaits_response) {
        (false, _) => Some(ElectionStep::Ping(ping)),
        (true, true) => Some(ElectionStep::Wait),
        (true, false) => None,
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at.checked_add(ELECTION_DURATION).is_ok_and(|end| end > now)
}

fn ends_before(start: Timestamp, duration: SignedDuration, now: Timestamp) -> bool {
    start.checked_add(duration).is_ok_and(|end| end < now)
}

/// Returns true if the holder has stopped renewing (`isLeaseExpired`).
fn is_expired(lease: &Object, now: Timestamp) -> bool {
    let duration = lease.at(&["spec", "leaseDurationSeconds"]).i64();
    match (candidate::spec_time(lease, "renewTime"), duration) {
        (Some(renewed), Some(seconds)) => ends_before(renewed, SignedDuration::from_secs(seconds), now),
        _ => true,
    }
}

/// Creates a new lease.
pub(super) fn new_lease(namespace: &str, name: &str, elected: &ElectionResult, now: Timestamp) -> Object {
    let mut lease = Object::new(&GroupVersion::new("coordination.k8s.io", "v1").kind("Lease"));
    lease.set(&["metadata", "namespace"], namespace);
    lease.set(&["metadata", "name"], name);
    lease.set(&["spec", "strategy"], &elected.strategy);
    if let Some(holder) = &elected.holder {
        set_holder(&mut lease, holder, now);
    } else {
        lease.set(&["spec", "leaseDurationSeconds"], LEASE_SECONDS);
        lease.set(&["spec", "renewTime"], time::rfc3339_micro(now));
    }
    lease
}

/// Returns the lease after an election; `None` if it is up to date. A holder that still renews keeps the lease, and
/// `preferredHolder` names its successor.
pub(super) fn updated_lease(lease: &Object, elected: &ElectionResult, now: Timestamp) -> Option<Object> {
    let mut after = lease.clone();
    if lease.at(&["spec", "strategy"]).opt_str() != Some(&elected.strategy) {
        after.set(&["spec", "strategy"], &elected.strategy);
    }
    let current_holder = lease.at(&["spec", "holderIdentity"]).str();
    match &elected.holder {
        Some(holder) if current_holder.is_empty() || (current_holder != holder && is_expired(lease, now)) => {
            after.remove(&["spec", "preferredHolder"]);
            after.remove(&["spec", "acquireTime"]);
            set_holder(&mut after, holder, now);
        }
        Some(holder) if current_holder != holder => after.set(&["spec", "preferredHolder"], holder),
        _ => {}
    }
    let same = after.cursor().same_as(&lease.cursor());
    (!same).then_some(after)
}

fn set_holder(lease: &mut Object, holder: &str, now: Timestamp) {
    lease.set(&["spec", "holderIdentity"], holder);
    lease.set(&["spec", "leaseDurationSeconds"], LEASE_SECONDS);
    lease.set(&["spec", "renewTime"], time::rfc3339_micro(now));
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
