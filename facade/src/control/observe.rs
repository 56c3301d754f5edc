//! Observations of backends by this facade's own requests, reported when they change.

use std::collections::HashMap;
use std::time::Duration;

use portico_proxy::MirrorStats;
use tokio::time::Instant;

use crate::route_table::RouteTable;

/// Interval after which a reachable backend is reported again: a control service that cannot reach the backend itself trusts
/// the report of a facade for twice this time.
const REPEAT_INTERVAL: Duration = Duration::from_secs(30);

/// Observation of one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackendObservation {
    /// Name of the APIService.
    pub name: String,
    /// Stage that fails; empty if the backend is reachable.
    pub stage: &'static str,
    /// Human-readable explanation.
    pub detail: String,
}

/// State that was last reported. It is empty when a stream starts.
#[derive(Debug, Default)]
pub(super) struct Observer {
    reported: HashMap<String, LastReport>,
    reported_mirrors: HashMap<String, MirrorStats>,
}

#[derive(Clone, Copy, Debug)]
struct LastReport {
    stage: &'static str,
    reported_at: Instant,
}

impl LastReport {
    /// True if this stage must be reported, given the time of the last request to the backend.
    fn is_outdated(self, stage: &'static str, last_used: Instant, now: Instant) -> bool {
        let is_still_used = stage.is_empty() && last_used > self.reported_at;
        stage != self.stage || is_still_used && now.duration_since(self.reported_at) >= REPEAT_INTERVAL
    }
}

impl Observer {
    /// Returns observations that differ from the last report, and successes that were reported long ago while requests continue.
    /// Routes that were never used have no observation.
    pub fn changes(&self, table: &RouteTable) -> Vec<BackendObservation> {
        let now = Instant::now();
        let observations = table.routes().filter_map(|upstream| {
            let observation = upstream.observation()?;
            let stage = observation.failed.map_or("", portico_proxy::Stage::as_str);
            let name = &upstream.route().name;
            let last_report = self.reported.get(name);
            let is_news =
                last_report.is_none_or(|report| report.is_outdated(stage, observation.last_used, now));
            is_news.then(|| BackendObservation { name: name.clone(), stage, detail: observation.message })
        });
        observations.collect()
    }

    /// Returns the counts of mirrors that differ from the last report.
    pub fn mirror_changes(&self, table: &RouteTable) -> Vec<(String, MirrorStats)> {
        let changed = table.routes().filter_map(|upstream| {
            let (name, counts) = (&upstream.route().name, upstream.mirror_stats()?);
            let is_new = match self.reported_mirrors.get(name) {
                Some(reported) => *reported != counts,
                None => counts != MirrorStats::default(),
            };
            is_new.then(|| (name.clone(), counts))
        });
        changed.collect()
    }

    /// Records that these observations and counts were reported.
    pub fn record_reported(
        &mut self,
        observations: Vec<BackendObservation>,
        mirrors: Vec<(String, MirrorStats)>,
    ) {
        let reported_at = Instant::now();
        self.reported
            .extend(observations.into_iter().map(|s| (s.name, LastReport { stage: s.stage, reported_at })));
        self.reported_mirrors.extend(mirrors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_and_so_are_successes_while_requests_continue() {
        let reported_at = Instant::now();
        let after = |seconds| reported_at + Duration::from_secs(seconds);
        let is_news = |last_stage, stage, last_used, now| {
            LastReport { stage: last_stage, reported_at }.is_outdated(stage, after(last_used), after(now))
        };
        assert!(is_news("", "dial", 1, 1) && is_news("dial", "", 1, 1));
        assert!(is_news("", "", 1, 30), "requests continue");
        assert!(!is_news("", "", 29, 29), "the last report is recent");
        assert!(!is_news("", "", 0, 300), "no request since the last report");
        assert!(!is_news("dial", "dial", 300, 300), "an unreachable backend is reported once");
    }
}
