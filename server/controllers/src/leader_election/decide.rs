//! Decides the next step of an election from the lease and its candidates (upstream's `reconcileElectionStep`). Pure.
//!
//! There is no state between steps: the candidates contain the times of pings and renewals.

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{GroupVersion, Object, time};

use super::candidate::{self, Candidate, OLDEST_EMULATION_VERSION, VALID_SECONDS};

/// Time that candidates have to respond (`electionDuration`).
const ELECTION: SignedDuration = SignedDuration::from_secs(5);
/// `leaseDurationSeconds` of leases created by this controller.
const LEASE_SECONDS: i32 = 5;

/// Next step of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait for a change.
    Rest,
    /// Wait for the expiry of the lease or for responses of candidates.
    Wait,
    /// Ping these candidates.
    Ping(Vec<String>),
    /// Write this result into the lease.
    Elect(Elected),
}

/// Result of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elected {
    pub(super) strategy: String,
    /// New holder; `None` if another component implements the strategy.
    pub(super) holder: Option<String>,
}

/// Failure of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stuck {
    pub(super) why: String,
    /// True if a retry may succeed without a change.
    pub(super) look_again: bool,
}

/// Decides the next step for a lease. `candidates` are the valid ones.
pub(super) fn step(candidates: &[Candidate], lease: Option<&Object>, now: Timestamp) -> Result<Step, Stuck> {
    if candidates.is_empty() {
        return Ok(Step::Rest);
    }
    let stuck = |look_again| move |why: String| Stuck { why, look_again };
    if !is_needed(candidates, lease, now).map_err(stuck(true))? {
        return Ok(Step::Wait);
    }
    if let Some(waiting) = ask(candidates, now) {
        return Ok(waiting);
    }
    let there: Vec<&Candidate> = candidates.iter().filter(|c| is_recent(c.renewed, now)).collect();
    if there.is_empty() {
        return Err(stuck(false)("no available candidates".to_owned()));
    }
    let strategy = candidate::strategy(&there).map_err(stuck(false))?.to_owned();
    let holder = if strategy == OLDEST_EMULATION_VERSION {
        let best = candidate::oldest(there.iter().copied());
        let none = || stuck(false)("should not happen, could not find suitable electee".to_owned());
        Some(best.ok_or_else(none)?.name.clone())
    } else {
        None
    };
    Ok(Step::Elect(Elected { strategy, holder }))
}

/// Returns true if another candidate might have to hold the lease (`electionNeeded`).
fn is_needed(candidates: &[Candidate], lease: Option<&Object>, now: Timestamp) -> Result<bool, String> {
    let Some(lease) = lease else { return Ok(true) };
    let holder = lease.at(&["spec", "holderIdentity"]).str();
    if is_expired(lease, now) || holder.is_empty() {
        return Ok(true);
    }
    let half = SignedDuration::from_secs(VALID_SECONDS / 2);
    if candidates.iter().any(|c| ends_before(c.renewed, half, now)) {
        return Ok(true);
    }
    let all: Vec<&Candidate> = candidates.iter().collect();
    if candidate::strategy(&all)? != OLDEST_EMULATION_VERSION {
        return Ok(false);
    }
    Ok(candidate::oldest(candidates).is_some_and(|best| best.name != holder))
}

/// Pings candidates without a recent renewal, and waits for those with a recent ping. `None` if neither is necessary.
fn ask(candidates: &[Candidate], now: Timestamp) -> Option<Step> {
    let mut owing = false;
    let mut ping = Vec::new();
    for candidate in candidates {
        if candidate.owes_an_answer() && candidate.pinged.is_some_and(|pinged| is_recent(pinged, now)) {
            owing = true;
        } else if !is_recent(candidate.renewed, now) {
            let is_past = |pinged| ends_before(pinged, ELECTION, now) && !candidate.owes_an_answer();
            if candidate.pinged.is_none_or(is_past) {
                ping.push(candidate.name.clone());
            }
        }
    }
    match (ping.is_empty(), owing) {
        (false, _) => Some(Step::Ping(ping)),
        (true, true) => Some(Step::Wait),
        (true, false) => None,
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at.checked_add(ELECTION).is_ok_and(|end| end > now)
}

fn ends_before(start: Timestamp, lasts: SignedDuration, now: Timestamp) -> bool {
    start.checked_add(lasts).is_ok_and(|end| end < now)
}

/// Returns true if the holder has stopped renewing (`isLeaseExpired`).
fn is_expired(lease: &Object, now: Timestamp) -> bool {
    let lasts = lease.at(&["spec", "leaseDurationSeconds"]).i64();
    match (candidate::moment(lease, "renewTime"), lasts) {
        (Some(renewed), Some(seconds)) => ends_before(renewed, SignedDuration::from_secs(seconds), now),
        _ => true,
    }
}

/// Creates a new lease.
pub(super) fn created(namespace: &str, name: &str, elected: &Elected, now: Timestamp) -> Object {
    let mut lease = Object::new(&GroupVersion::new("coordination.k8s.io", "v1").kind("Lease"));
    lease.set(&["metadata", "namespace"], namespace);
    lease.set(&["metadata", "name"], name);
    lease.set(&["spec", "strategy"], &elected.strategy);
    if let Some(holder) = &elected.holder {
        hand_over(&mut lease, holder, now);
    } else {
        lease.set(&["spec", "leaseDurationSeconds"], LEASE_SECONDS);
        lease.set(&["spec", "renewTime"], time::rfc3339_micro(now));
    }
    lease
}

/// Returns the lease after an election; `None` if it is up to date. A holder that still renews keeps the lease, and
/// `preferredHolder` names its successor.
pub(super) fn changed(lease: &Object, elected: &Elected, now: Timestamp) -> Option<Object> {
    let mut after = lease.clone();
    if lease.at(&["spec", "strategy"]).opt_str() != Some(&elected.strategy) {
        after.set(&["spec", "strategy"], &elected.strategy);
    }
    let held = lease.at(&["spec", "holderIdentity"]).str();
    match &elected.holder {
        Some(holder) if held.is_empty() || (held != holder && is_expired(lease, now)) => {
            after.remove(&["spec", "preferredHolder"]);
            after.remove(&["spec", "acquireTime"]);
            hand_over(&mut after, holder, now);
        }
        Some(holder) if held != holder => after.set(&["spec", "preferredHolder"], holder),
        _ => {}
    }
    let same = after.cursor().same_as(&lease.cursor());
    (!same).then_some(after)
}

fn hand_over(lease: &mut Object, holder: &str, now: Timestamp) {
    lease.set(&["spec", "holderIdentity"], holder);
    lease.set(&["spec", "leaseDurationSeconds"], LEASE_SECONDS);
    lease.set(&["spec", "renewTime"], time::rfc3339_micro(now));
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
