//! Reports of other control services of the same store about backends. A backend is available if one control service reaches it:
//! each reports the backends that it does not reach, the others report which of these they reach, and the condition becomes
//! false if no control service reaches the backend.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

/// Time for other control services to report that they reach a backend, before its condition becomes false.
pub const OBJECTION_WAIT: Duration = Duration::from_secs(5);

/// Report of a control service and its facades to other control services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PeerReport {
    /// APIServices whose backends the sender does not reach.
    pub unreached: BTreeSet<String>,
    /// APIServices that the sender reaches and other control services do not.
    pub reached: BTreeSet<String>,
}

impl PeerReport {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.unreached.iter().chain(&self.reached)
    }
}

/// Decision about a backend that this control service does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreachedDecision {
    /// Report the backend as unavailable.
    Report,
    /// Another control service reaches the backend, or reports it as unavailable.
    ReportedByPeer,
    /// Wait for objections of other control services for this duration.
    Wait(Duration),
}

/// The last reports of other control services, by identity.
#[derive(Default)]
pub(super) struct Peers {
    own: String,
    reports: BTreeMap<String, PeerReport>,
    /// Time of the last report of another control service, initially the start of the exchange. `None` if no other control
    /// service can share the store.
    last_seen: Option<Instant>,
    /// Times since which available backends have not been reached.
    unreached_since: HashMap<Arc<str>, Instant>,
}

impl Peers {
    /// Replaces the reports. Returns the APIServices whose reports have changed.
    pub(super) fn replace(
        &mut self,
        own: &str,
        reports: BTreeMap<String, PeerReport>,
        now: Instant,
    ) -> BTreeSet<String> {
        own.clone_into(&mut self.own);
        if self.last_seen.is_none() || !reports.is_empty() {
            self.last_seen = Some(now);
        }
        let (before, after) = (std::mem::replace(&mut self.reports, reports), &self.reports);
        let changed = before.keys().chain(after.keys()).filter(|peer| before.get(*peer) != after.get(*peer));
        let reports = changed.flat_map(|peer| before.get(peer).into_iter().chain(after.get(peer)));
        reports.flat_map(PeerReport::names).cloned().collect()
    }

    /// Returns the APIServices that a control service has stopped reaching, according to its next report.
    pub(super) fn newly_unreached<'a>(
        &self,
        next: &'a BTreeMap<String, PeerReport>,
    ) -> impl Iterator<Item = &'a str> {
        next.iter().flat_map(|(peer, report)| {
            let before = self.reports.get(peer);
            let is_new = move |name: &&String| before.is_none_or(|before| !before.unreached.contains(*name));
            report.unreached.iter().filter(is_new).map(String::as_str)
        })
    }

    /// Builds the report about these backends; the flag is true if this control service reaches the backend.
    pub(super) fn own_report<'a>(&self, backends: impl Iterator<Item = (&'a str, bool)>) -> PeerReport {
        let mut report = PeerReport::default();
        for (name, is_reached) in backends {
            if !is_reached {
                report.unreached.insert(name.to_owned());
            } else if self.reports.values().any(|peer| peer.unreached.contains(name)) {
                report.reached.insert(name.to_owned());
            }
        }
        report
    }

    /// Forgets a backend that is reached or whose APIService is deleted.
    pub(super) fn forget(&mut self, name: &str) {
        self.unreached_since.remove(name);
    }

    /// Decides about a backend that is not reached; `is_available` is the status of its condition.
    pub(super) fn decide_unreached(
        &mut self,
        name: &Arc<str>,
        is_available: bool,
        now: Instant,
    ) -> UnreachedDecision {
        if self.reports.values().any(|peer| peer.reached.contains(&**name)) {
            self.unreached_since.remove(name);
            return UnreachedDecision::ReportedByPeer;
        }
        if !is_available {
            self.unreached_since.remove(name);
            // Only the first by identity writes the message: each control service may see a different error.
            let first = self.reports.iter().find(|(_, peer)| peer.unreached.contains(&**name));
            let is_first = first.is_none_or(|(peer, _)| self.own < *peer);
            return if is_first { UnreachedDecision::Report } else { UnreachedDecision::ReportedByPeer };
        }
        if self.is_alone(now) {
            return UnreachedDecision::Report;
        }
        let since = *self.unreached_since.entry(name.clone()).or_insert(now);
        match OBJECTION_WAIT.checked_sub(now - since) {
            None | Some(Duration::ZERO) => UnreachedDecision::Report,
            Some(rest) => UnreachedDecision::Wait(rest),
        }
    }

    /// Returns true if no other control service can object: none has reported for [`OBJECTION_WAIT`].
    fn is_alone(&self, now: Instant) -> bool {
        self.reports.is_empty() && self.last_seen.is_none_or(|seen| now - seen >= OBJECTION_WAIT)
    }
}
