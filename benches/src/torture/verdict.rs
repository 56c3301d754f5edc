//! Result of a run: counts, and all violations.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portico_tests::disk::ShimCounts;

use super::client::Recorder;
use super::cluster::{Cluster, Topology};
use super::faults::Counts;
use super::history::{Operation, Request, Response, Sighting, Violation};
use super::linear;
use super::observed_changes::ObservedChanges;
use super::watch_check;
use super::watch_record::{Kind, Segment, Selection, WatcherRecord};
use crate::Failure;

/// Maximum number of violations that are printed completely.
const MAX_PRINTED: usize = 5;

/// Result of a run.
pub(crate) struct Verdict {
    pub(crate) violations: Vec<Violation>,
    operations: usize,
    acknowledged: usize,
    unknown: usize,
    lists: usize,
    counts: Counts,
    events: usize,
    resumed: u64,
    relisted: usize,
    ended: u64,
    ended_late: u64,
    starts: u64,
    disk: ShimCounts,
}

impl Verdict {
    /// Checks the whole history.
    pub(crate) fn of(
        recorder: &Recorder,
        watched: Vec<WatcherRecord>,
        cluster: &Cluster,
        counts: Counts,
        late: Vec<String>,
    ) -> Result<Self, Failure> {
        let (operations, lists) = (recorder.operations.lock(), recorder.lists.lock());
        let mut violations: Vec<Violation> = recorder
            .unexpected
            .lock()
            .iter()
            .map(|strange| Violation::new("", format!("unexpected response: {strange}"), []))
            .collect();
        violations.extend(
            late.iter().map(|name| Violation::new("", format!("the watcher {name} did not catch up"), [])),
        );
        violations.extend(check_objects(&operations, &watched));
        let (past, contradictions) = ObservedChanges::of(&operations, &watched);
        violations.extend(contradictions);
        violations.extend(watched.iter().flat_map(|watched| watch_check::check(&past, watched)));
        let lists_checked = lists
            .iter()
            .flat_map(|(client, list)| watch_check::check_list(&past, client, &Selection::All, list));
        violations.extend(lists_checked);
        let writes = operations.iter().filter(|one| one.request != Request::Read);
        let mut disk = ShimCounts::default();
        for shim in cluster.nodes.iter().filter_map(|node| node.shim.as_ref()) {
            disk.add(shim.counts()?);
        }
        Ok(Self {
            violations,
            operations: operations.len(),
            acknowledged: writes
                .filter(|one| matches!(one.response, Response::State(_) | Response::Deleted(_)))
                .count(),
            unknown: operations.iter().filter(|one| one.response == Response::Unknown).count(),
            lists: lists.len(),
            counts,
            events: segments(&watched).map(|segment| segment.events.len()).sum(),
            resumed: watched.iter().map(|watched| watched.resumed).sum(),
            relisted: watched.iter().map(|watched| watched.segments.len().saturating_sub(1)).sum(),
            ended: cluster.unexpected_ends(),
            ended_late: cluster.unexpected_ends() - cluster.ended_before,
            starts: cluster.nodes.iter().map(|node| node.starts).sum(),
            disk,
        })
    }

    /// Returns the report of a run.
    pub(crate) fn print(&self, topology: Topology, seed: u64) -> String {
        let mut text = format!("{topology:?}, seed {seed}\n");
        let faults: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  {} operations ({} writes acknowledged, {} with unknown outcome), {} lists; {} events, {} watches resumed, {} restarted with a list",
            self.operations,
            self.acknowledged,
            self.unknown,
            self.lists,
            self.events,
            self.resumed,
            self.relisted
        );
        let _ = writeln!(text, "  faults: {}", faults.join(", "));
        let _ = writeln!(
            text,
            "  {} process starts, {} after an unexpected exit, {} of these after all faults were healed",
            self.starts, self.ended, self.ended_late
        );
        let disk = self.disk;
        let _ = writeln!(
            text,
            "  disk: {} writes, {} syncs, {} of them failed, {} writes refused for lack of space; {} clock reads",
            disk.writes, disk.syncs, disk.failed_syncs, disk.refused_writes, disk.clock_calls
        );
        let _ = writeln!(text, "  {} violations", self.violations.len());
        for violation in self.violations.iter().take(MAX_PRINTED) {
            let _ = writeln!(text, "  VIOLATION {}: {}", violation.object, violation.what);
            for operation in &violation.operations {
                let _ = writeln!(text, "    {operation:?}");
            }
        }
        text
    }
}

fn segments(watched: &[WatcherRecord]) -> impl Iterator<Item = &Segment> {
    watched.iter().flat_map(|watched| &watched.segments)
}

/// Checks the linearizability of each object.
fn check_objects(operations: &[Operation], watched: &[WatcherRecord]) -> Vec<Violation> {
    let mut by_object: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        by_object.entry(&operation.object).or_default().push(operation);
    }
    let mut seen: BTreeMap<&str, Vec<Sighting>> = BTreeMap::new();
    for watched in watched {
        // An object that leaves a selection by label may still exist.
        let by_label = matches!(watched.selection, Selection::Group(_));
        for event in watched.segments.iter().flat_map(|segment| &segment.events) {
            let deleted = event.kind == Kind::Deleted;
            if !(deleted && by_label) {
                let (at, state, revision) = (event.at, event.state.clone(), event.state.revision);
                seen.entry(&event.object).or_default().push(Sighting { at, revision, deleted, state });
            }
        }
    }
    let check = |(object, operations): (&&str, &Vec<&Operation>)| {
        let seen: Vec<&Sighting> = seen.get(object).into_iter().flatten().collect();
        linear::check(object, operations, &seen)
    };
    by_object.iter().flat_map(check).collect()
}
