//! Applies documents whose objects other API servers store, concurrently with the folder's own pass: one pass per API group, as
//! soon as the servers of the group are available.
//!
//! Readiness, the folder's other documents and other groups never wait for these servers.

mod job;
mod pruning;
mod run;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_machinery::{GroupVersion, Status};
use portico_registry::Registry;
use tokio::sync::watch;

use crate::apply::ObjectKey;
use crate::document::Document;
use crate::foreign_servers::ForeignApiClient;
use crate::log::{self, MAX_LOGGED};
use crate::metrics::Metrics;
use crate::record::ResourceRecord;
use crate::state::{AggregatedState, FolderState};
use job::GroupJob;
pub(crate) use job::{GroupResult, PrunePolicy};

/// API groups on other servers that manifests are applied to concurrently.
///
/// Limit (Manifests): the rest waits.
const MAX_CONCURRENT_PASSES: usize = 16;
/// Backoff for failed passes without a change of the folder.
const RETRY_BACKOFF: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(500), Duration::from_secs(60), 2.0, 0.2);

/// Content of the folder for other servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct DesiredContent {
    /// Number of the folder's pass, which increases with each pass.
    pub(crate) pass: u64,
    /// Number of resyncs, which increases when all documents must be applied again.
    pub(crate) resyncs: u64,
    pub(crate) documents: Vec<Document>,
    pub(crate) prune_policy: PrunePolicy,
}

/// Progress of other servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AggregatedProgress {
    /// Newest pass of the folder of which all applicable documents were tried.
    pub(crate) pass: u64,
    /// True if a server has refused a document.
    pub(crate) has_refused: bool,
}

/// Applies documents to other servers.
pub(crate) struct AggregatedApplier {
    pub(crate) registry: Registry,
    pub(crate) client: Arc<dyn ForeignApiClient>,
    pub(crate) state: FolderState,
    pub(crate) metrics: Arc<Metrics>,
    /// Interval between checks of the servers' availability.
    pub(crate) poll_interval: Duration,
    pub(crate) progress: watch::Sender<AggregatedProgress>,
}

type Groups = BTreeMap<String, GroupState>;
type GroupPasses = FuturesUnordered<BoxFuture<'static, (String, GroupResult)>>;

impl AggregatedApplier {
    /// Applies the desired content until its sender is dropped.
    pub(crate) async fn run(self, mut desired: watch::Receiver<DesiredContent>) {
        let (mut groups, mut passes) = (Groups::new(), GroupPasses::new());
        let (mut content, mut is_distributed) = (DesiredContent::default(), true);
        loop {
            if !is_distributed {
                is_distributed = self.update_groups(&mut groups, &content).await.is_ok();
            }
            self.start_due_passes(&mut groups, &content, &passes);
            if is_distributed {
                self.report_progress(&groups, content.pass);
            }
            tokio::select! {
                changed = desired.changed() => match changed {
                    Ok(()) => (content, is_distributed) = (desired.borrow_and_update().clone(), false),
                    Err(_) => return,
                },
                Some((name, result)) = passes.next() => {
                    if let Some(group) = groups.get_mut(&name) {
                        self.metrics.record_group_pass(&result);
                        group.end_pass(result);
                    }
                    self.report_state(&groups);
                }
                () = tokio::time::sleep(self.poll_interval) => {}
            }
        }
    }

    /// Distributes new desired content to the groups.
    async fn update_groups(&self, groups: &mut Groups, content: &DesiredContent) -> Result<(), Box<Status>> {
        let record = ResourceRecord::load_aggregated(&self.registry).await.inspect_err(|status| {
            tracing::warn!(error = %status, "cannot load the record of applied manifests, retrying");
        })?;
        let mut desired: BTreeMap<String, Vec<Document>> =
            record.resources().map(|resource| (resource.group.clone(), Vec::new())).collect();
        for document in &content.documents {
            desired.entry(document.kind.group.clone()).or_default().push(document.clone());
        }
        groups.retain(|name, _| desired.contains_key(name));
        for (name, documents) in desired {
            let recorded = record.versions_of_group(&name);
            groups.entry(name).or_insert_with(GroupState::new).set_desired(documents, recorded, content);
        }
        self.report_state(groups);
        Ok(())
    }

    /// Starts passes of groups that are due, up to the limit.
    fn start_due_passes(&self, groups: &mut Groups, content: &DesiredContent, passes: &GroupPasses) {
        for (name, group) in groups {
            group.check_due(&*self.client);
            if group.is_due && !group.is_running && passes.len() < MAX_CONCURRENT_PASSES {
                let job = GroupJob {
                    registry: self.registry.clone(),
                    client: Arc::clone(&self.client),
                    group: name.clone(),
                    documents: group.documents.clone(),
                    applied_before: group.begin_pass(),
                    prune_policy: content.prune_policy,
                };
                passes.push(Box::pin(async move {
                    let result = run::run(&job).await;
                    (job.group, result)
                }));
            }
        }
    }

    /// Reports progress once all documents of a pass were tried.
    fn report_progress(&self, groups: &Groups, pass: u64) {
        if groups.values().any(|group| group.is_due || group.is_running) {
            return;
        }
        let has_refused = groups.values().any(|group| !group.result.refused.is_empty());
        let progress = AggregatedProgress { pass, has_refused };
        self.progress.send_if_modified(|before| std::mem::replace(before, progress) != progress);
    }

    fn report_state(&self, groups: &Groups) {
        let mut aggregated = AggregatedState::default();
        for group in groups.values() {
            let result = &group.result;
            aggregated.add(&group.documents, &result.waiting, &result.refused);
        }
        let (mut applied, mut remaining) = (0, 0);
        for group in groups.values() {
            applied += group.result.applied.len();
            remaining += group.result.remaining.len();
        }
        self.metrics.set_aggregated(applied, &aggregated, remaining);
        self.state.set_aggregated(aggregated);
    }
}

/// Documents of a group, and the result of its last pass.
struct GroupState {
    documents: Vec<Document>,
    /// Group versions of the documents.
    versions: BTreeSet<GroupVersion>,
    /// Group versions with objects in the record.
    recorded: BTreeSet<GroupVersion>,
    resyncs: u64,
    prune_policy: PrunePolicy,
    /// Reachability of the servers at the last check, with the reason for unreachable ones.
    reachability: BTreeMap<GroupVersion, Result<(), String>>,
    /// Result of the last pass.
    result: GroupResult,
    backoff: Backoff,
    retry_at: Option<Instant>,
    is_due: bool,
    is_running: bool,
    /// True if documents applied before must be applied again.
    needs_reapply: bool,
}

impl GroupState {
    fn new() -> Self {
        Self {
            documents: Vec::new(),
            versions: BTreeSet::new(),
            recorded: BTreeSet::new(),
            resyncs: 0,
            prune_policy: PrunePolicy::Defer,
            reachability: BTreeMap::new(),
            result: GroupResult::default(),
            backoff: Backoff::new(RETRY_BACKOFF),
            retry_at: None,
            is_due: true,
            is_running: false,
            needs_reapply: false,
        }
    }

    fn set_desired(
        &mut self,
        documents: Vec<Document>,
        recorded: BTreeSet<GroupVersion>,
        content: &DesiredContent,
    ) {
        let digests_of = |documents: &[Document]| -> Vec<_> {
            documents.iter().map(|document| (document.origin.clone(), document.digest.clone())).collect()
        };
        let has_changed = digests_of(&self.documents) != digests_of(&documents);
        let is_resync = self.resyncs != content.resyncs;
        // A change to a policy that deletes nothing now requires no pass.
        let needs_pruning =
            content.prune_policy != PrunePolicy::Defer && self.prune_policy != content.prune_policy;
        if has_changed || is_resync || needs_pruning {
            self.is_due = true;
            self.backoff.reset();
        }
        self.needs_reapply |= is_resync;
        self.versions = documents.iter().map(|document| document.kind.group_version()).collect();
        (self.documents, self.recorded) = (documents, recorded);
        (self.resyncs, self.prune_policy) = (content.resyncs, content.prune_policy);
    }

    /// Checks reachability and retry time, and sets `is_due` if a pass is necessary.
    fn check_due(&mut self, client: &dyn ForeignApiClient) {
        let versions = self.versions.union(&self.recorded);
        let reachability = versions.map(|version| (version.clone(), client.check_reachable(version)));
        let reachability: BTreeMap<_, _> = reachability.collect();
        if reachability != self.reachability {
            let has_recovered = |(version, now): (&GroupVersion, &Result<(), String>)| {
                now.is_ok() && self.reachability.get(version).is_some_and(Result::is_err)
            };
            // A server that was unreachable may have lost its objects.
            self.needs_reapply |= reachability.iter().any(has_recovered);
            self.is_due = true;
            self.reachability = reachability;
        }
        let is_retry_due = self.retry_at.is_some_and(|at| at <= Instant::now());
        if is_retry_due && self.is_reachable() {
            (self.is_due, self.retry_at) = (true, None);
        }
    }

    /// Starts a pass. Returns the documents that need not be applied again, by digest.
    fn begin_pass(&mut self) -> HashMap<String, ObjectKey> {
        (self.is_due, self.is_running) = (false, true);
        if self.needs_reapply && self.is_reachable() {
            self.needs_reapply = false;
            return HashMap::new();
        }
        self.result.applied.iter().map(|(key, digest)| (digest.clone(), key.clone())).collect()
    }

    fn is_reachable(&self) -> bool {
        self.reachability.values().any(Result::is_ok)
    }

    fn end_pass(&mut self, mut result: GroupResult) {
        self.is_running = false;
        if !result.has_searched_remaining {
            result.remaining.clone_from(&self.result.remaining);
        }
        log_result(&result, &self.result);
        if let Some(recorded) = &result.recorded {
            self.recorded.clone_from(recorded);
        }
        if result.needs_retry {
            self.retry_at = Some(Instant::now() + self.backoff.next_wait());
        } else {
            self.retry_at = None;
            self.backoff.reset();
        }
        self.result = result;
    }
}

/// Logs the result of a pass, and new faults once.
fn log_result(result: &GroupResult, previous: &GroupResult) {
    let GroupResult { created, changed, unchanged, refused, waiting, warnings, remaining, .. } = result;
    log::faults(refused, &previous.refused);
    for fault in waiting.iter().filter(|fault| !previous.waiting.contains(fault)).take(MAX_LOGGED) {
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
    log::remaining(remaining, &previous.remaining);
}
