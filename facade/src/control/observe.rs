//! Observations of backends by this facade's own requests, reported when they change.

use std::collections::HashMap;
use std::time::Duration;

use portico_proxy::Mirrored;
use tokio::time::Instant;

use crate::route_table::RouteTable;

/// Interval after which a reachable backend is reported again: a control service that cannot reach the backend itself trusts
/// the report of a facade for twice this time.
const REPEAT: Duration = Duration::from_secs(30);

/// Observation of one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
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
    reported: HashMap<String, Reported>,
    mirrored: HashMap<String, Mirrored>,
}

#[derive(Clone, Copy, Debug)]
struct Reported {
    stage: &'static str,
    at: Instant,
}

impl Reported {
    /// True if this stage must be reported, given the time of the last request to the backend.
    fn is_outdated(self, stage: &'static str, last_used: Instant, now: Instant) -> bool {
        let goes_on = stage.is_empty() && last_used > self.at;
        stage != self.stage || goes_on && now.duration_since(self.at) >= REPEAT
    }
}

impl Observer {
    /// Returns observations that differ from the last report, and successes that were reported long ago while requests continue.
    /// Routes that were never used have no observation.
    pub fn changes(&self, table: &RouteTable) -> Vec<Seen> {
        let now = Instant::now();
        let seen = table.routes().filter_map(|upstream| {
            let observation = upstream.observation()?;
            let stage = observation.failed.map_or("", portico_proxy::Stage::as_str);
            let name = &upstream.route().name;
            let known = self.reported.get(name);
            let is_news = known.is_none_or(|known| known.is_outdated(stage, observation.last_used, now));
            is_news.then(|| Seen { name: name.clone(), stage, detail: observation.message })
        });
        seen.collect()
    }

    /// Returns the counts of mirrors that differ from the last report.
    pub fn mirrored(&self, table: &RouteTable) -> Vec<(String, Mirrored)> {
        let counted = table.routes().filter_map(|upstream| {
            let (name, counts) = (&upstream.route().name, upstream.mirrored()?);
            let is_new = match self.mirrored.get(name) {
                Some(known) => *known != counts,
                None => counts != Mirrored::default(),
            };
            is_new.then(|| (name.clone(), counts))
        });
        counted.collect()
    }

    /// Records that these observations and counts were reported.
    pub fn reported(&mut self, seen: Vec<Seen>, mirrored: Vec<(String, Mirrored)>) {
        let at = Instant::now();
        self.reported.extend(seen.into_iter().map(|s| (s.name, Reported { stage: s.stage, at })));
        self.mirrored.extend(mirrored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_news_and_so_is_what_goes_well_for_long_while_it_is_used() {
        let at = Instant::now();
        let after = |seconds| at + Duration::from_secs(seconds);
        let is_news = |known, stage, last_used, now| {
            Reported { stage: known, at }.is_outdated(stage, after(last_used), after(now))
        };
        assert!(is_news("", "dial", 1, 1) && is_news("dial", "", 1, 1));
        assert!(is_news("", "", 1, 30), "it is used");
        assert!(!is_news("", "", 29, 29), "it was reported just now");
        assert!(!is_news("", "", 0, 300), "nothing was sent since");
        assert!(!is_news("dial", "dial", 300, 300), "the first report is enough while it cannot be reached");
    }
}
