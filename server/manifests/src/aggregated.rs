//! Applies documents whose objects other API servers store, concurrently with the folder's own pass: one pass per API group, as
//! soon as the servers of the group are available.
//!
//! Readiness, the folder's other documents and other groups never wait for these servers.

mod job;
mod left;
mod run;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use portico_kit::backoff::{Backoff, Policy};
use portico_machinery::{GroupVersion, Status};
use portico_registry::Registry;
use tokio::sync::watch;

use crate::apply::Key;
use crate::document::Document;
use crate::log::{self, MAX_LOGGED};
use crate::metrics::Metrics;
use crate::other_servers::OtherServers;
use crate::record::Record;
use crate::state::{AggregatedState, State};
use job::Job;
pub(crate) use job::{Pruning, Visit};

/// API groups on other servers that manifests are applied to concurrently.
///
/// Limit (Manifests): the rest waits.
const MAX_VISITS: usize = 16;
/// Backoff for failed passes without a change of the folder.
const RETRY: Policy = Policy::new(Duration::from_millis(500), Duration::from_secs(60), 2.0, 0.2);

/// Content of the folder for other servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Number of the folder's pass, which increases with each pass.
    pub(crate) pass: u64,
    /// Number of resyncs, which increases when all documents must be applied again.
    pub(crate) resyncs: u64,
    pub(crate) documents: Vec<Document>,
    pub(crate) pruning: Pruning,
}

/// Progress of other servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Newest pass of the folder of which all applicable documents were tried.
    pub(crate) pass: u64,
    /// True if a server has refused a document.
    pub(crate) has_refused: bool,
}

/// Applies documents to other servers.
pub(crate) struct Visitor {
    pub(crate) registry: Registry,
    pub(crate) others: Arc<dyn OtherServers>,
    pub(crate) state: State,
    pub(crate) metrics: Arc<Metrics>,
    /// Interval between checks of the servers' availability.
    pub(crate) look_period: Duration,
    pub(crate) settled: watch::Sender<Settled>,
}

type Groups = BTreeMap<String, Group>;
type Visits = FuturesUnordered<BoxFuture<'static, (String, Visit)>>;

impl Visitor {
    /// Applies the desired content until its sender is dropped.
    pub(crate) async fn run(self, mut wanted: watch::Receiver<Wanted>) {
        let (mut groups, mut visits) = (Groups::new(), Visits::new());
        let (mut now, mut is_taken) = (Wanted::default(), true);
        loop {
            if !is_taken {
                is_taken = self.take(&mut groups, &now).await.is_ok();
            }
            self.begin(&mut groups, &now, &visits);
            if is_taken {
                self.settle(&groups, now.pass);
            }
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => (now, is_taken) = (wanted.borrow_and_update().clone(), false),
                    Err(_) => return,
                },
                Some((name, visit)) = visits.next() => {
                    if let Some(group) = groups.get_mut(&name) {
                        self.metrics.visited(&visit);
                        group.end(visit);
                    }
                    self.report(&groups);
                }
                () = tokio::time::sleep(self.look_period) => {}
            }
        }
    }

    /// Distributes new desired content to the groups.
    async fn take(&self, groups: &mut Groups, now: &Wanted) -> Result<(), Box<Status>> {
        let record = Record::load_aggregated(&self.registry).await.inspect_err(|status| {
            tracing::warn!(error = %status, "cannot load the record of applied manifests, retrying");
        })?;
        let mut wanted: BTreeMap<String, Vec<Document>> =
            record.resources().map(|resource| (resource.group.clone(), Vec::new())).collect();
        for document in &now.documents {
            wanted.entry(document.kind.group.clone()).or_default().push(document.clone());
        }
        groups.retain(|name, _| wanted.contains_key(name));
        for (name, documents) in wanted {
            let recorded = record.versions_of_group(&name);
            groups.entry(name).or_insert_with(Group::new).want(documents, recorded, now);
        }
        self.report(groups);
        Ok(())
    }

    /// Starts passes of groups that are due, up to the limit.
    fn begin(&self, groups: &mut Groups, now: &Wanted, visits: &Visits) {
        for (name, group) in groups {
            group.look(&*self.others);
            if group.is_due && !group.is_visited && visits.len() < MAX_VISITS {
                let job = Job {
                    registry: self.registry.clone(),
                    others: Arc::clone(&self.others),
                    group: name.clone(),
                    documents: group.documents.clone(),
                    known: group.begin(),
                    pruning: now.pruning,
                };
                visits.push(Box::pin(async move {
                    let visit = run::run(&job).await;
                    (job.group, visit)
                }));
            }
        }
    }

    /// Reports progress once all documents of a pass were tried.
    fn settle(&self, groups: &Groups, pass: u64) {
        if groups.values().any(|group| group.is_due || group.is_visited) {
            return;
        }
        let has_refused = groups.values().any(|group| !group.visit.refused.is_empty());
        let settled = Settled { pass, has_refused };
        self.settled.send_if_modified(|before| std::mem::replace(before, settled) != settled);
    }

    fn report(&self, groups: &Groups) {
        let mut aggregated = AggregatedState::default();
        for group in groups.values() {
            let visit = &group.visit;
            aggregated.add(&group.documents, &visit.waiting, &visit.refused);
        }
        let (mut applied, mut left) = (0, 0);
        for group in groups.values() {
            applied += group.visit.applied.len();
            left += group.visit.left.len();
        }
        self.metrics.aggregated(applied, &aggregated, left);
        self.state.visited(aggregated);
    }
}

/// Documents of a group, and the result of its last pass.
struct Group {
    documents: Vec<Document>,
    /// Group versions of the documents.
    versions: BTreeSet<GroupVersion>,
    /// Group versions with objects in the record.
    recorded: BTreeSet<GroupVersion>,
    resyncs: u64,
    pruning: Pruning,
    /// Reachability of the servers at the last check, with the reason for unreachable ones.
    reachability: BTreeMap<GroupVersion, Result<(), String>>,
    /// Result of the last pass.
    visit: Visit,
    backoff: Backoff,
    retry_at: Option<Instant>,
    is_due: bool,
    is_visited: bool,
    /// True if documents applied before must be applied again.
    is_doubtful: bool,
}

impl Group {
    fn new() -> Self {
        Self {
            documents: Vec::new(),
            versions: BTreeSet::new(),
            recorded: BTreeSet::new(),
            resyncs: 0,
            pruning: Pruning::Later,
            reachability: BTreeMap::new(),
            visit: Visit::default(),
            backoff: Backoff::new(RETRY),
            retry_at: None,
            is_due: true,
            is_visited: false,
            is_doubtful: false,
        }
    }

    fn want(&mut self, documents: Vec<Document>, recorded: BTreeSet<GroupVersion>, now: &Wanted) {
        let of = |documents: &[Document]| -> Vec<_> {
            documents.iter().map(|document| (document.origin.clone(), document.digest.clone())).collect()
        };
        let has_changed = of(&self.documents) != of(&documents);
        let is_resync = self.resyncs != now.resyncs;
        // A change to a policy that deletes nothing now requires no pass.
        let is_pruned = now.pruning != Pruning::Later && self.pruning != now.pruning;
        if has_changed || is_resync || is_pruned {
            self.is_due = true;
            self.backoff.reset();
        }
        self.is_doubtful |= is_resync;
        self.versions = documents.iter().map(|document| document.kind.group_version()).collect();
        (self.documents, self.recorded) = (documents, recorded);
        (self.resyncs, self.pruning) = (now.resyncs, now.pruning);
    }

    /// Checks reachability and retry time, and sets `is_due` if a pass is necessary.
    fn look(&mut self, others: &dyn OtherServers) {
        let versions = self.versions.union(&self.recorded);
        let reachability = versions.map(|version| (version.clone(), others.reachable(version)));
        let reachability: BTreeMap<_, _> = reachability.collect();
        if reachability != self.reachability {
            let is_back = |(version, now): (&GroupVersion, &Result<(), String>)| {
                now.is_ok() && self.reachability.get(version).is_some_and(Result::is_err)
            };
            // A server that was unreachable may have lost its objects.
            self.is_doubtful |= reachability.iter().any(is_back);
            self.is_due = true;
            self.reachability = reachability;
        }
        let is_time = self.retry_at.is_some_and(|at| at <= Instant::now());
        if is_time && self.is_reachable() {
            (self.is_due, self.retry_at) = (true, None);
        }
    }

    /// Starts a pass. Returns the documents that need not be applied again, by digest.
    fn begin(&mut self) -> HashMap<String, Key> {
        (self.is_due, self.is_visited) = (false, true);
        if self.is_doubtful && self.is_reachable() {
            self.is_doubtful = false;
            return HashMap::new();
        }
        self.visit.applied.iter().map(|(key, digest)| (digest.clone(), key.clone())).collect()
    }

    fn is_reachable(&self) -> bool {
        self.reachability.values().any(Result::is_ok)
    }

    fn end(&mut self, mut visit: Visit) {
        self.is_visited = false;
        if !visit.has_looked {
            visit.left.clone_from(&self.visit.left);
        }
        report(&visit, &self.visit);
        if let Some(recorded) = &visit.recorded {
            self.recorded.clone_from(recorded);
        }
        if visit.has_undone {
            self.retry_at = Some(Instant::now() + self.backoff.next_wait());
        } else {
            self.retry_at = None;
            self.backoff.reset();
        }
        self.visit = visit;
    }
}

/// Logs the result of a pass, and new faults once.
fn report(visit: &Visit, before: &Visit) {
    let Visit { created, changed, unchanged, refused, waiting, warnings, left, .. } = visit;
    log::faults(refused, &before.refused);
    for fault in waiting.iter().filter(|fault| !before.waiting.contains(fault)).take(MAX_LOGGED) {
        let (object, reason) = (&fault.object, &fault.message);
        tracing::info!(
            manifest = %fault.origin,
            object,
            reason,
            "manifest deferred, API server not ready"
        );
    }
    log::warnings(warnings);
    if created + changed > 0 {
        let (failed, waiting) = (refused.len(), waiting.len());
        tracing::info!(
            created,
            changed,
            unchanged,
            failed,
            waiting,
            "manifests applied to other API servers"
        );
    }
    log::left(left, &before.left);
}
