//! Polls the folder and applies its changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::metrics;
use portico_kit::tasks::blocking;
use portico_registry::Registry;
use tokio::sync::{Notify, watch};

use crate::aggregated_applier::{AggregatedApplier, AggregatedProgress, DesiredContent, PrunePolicy};
use crate::content::{self, FolderContent};
use crate::document::Fault;
use crate::folder::{self, FileEntry, FolderError};
use crate::foreign_servers::ForeignApiClient;
use crate::log;
use crate::metrics::Metrics;
use crate::pass::{self, AppliedDocuments, PassResult};
use crate::prune;
use crate::record::ResourceRecord;
use crate::requests::Requests;
use crate::settings::Settings;
use crate::state::FolderState;

/// Time without changes before a change of the folder is applied, because files are written one after another.
const QUIET_PERIOD: Duration = Duration::from_millis(100);
/// Maximum number of quiet periods to wait for while files keep changing.
const MAX_QUIET_WAITS: usize = 20;
/// Backoff for failed passes without a change of a file.
const RETRY_BACKOFF: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(500), Duration::from_secs(60), 2.0, 0.2);

/// Follower of the folder. Cheap to clone.
#[derive(Clone)]
pub struct Manifests {
    settings: Arc<Settings>,
    registry: Registry,
    requests: Arc<dyn Requests>,
    metrics: Arc<Metrics>,
    state: FolderState,
    poll_now: Arc<Notify>,
}

/// State between two polls.
struct FollowState {
    files: Option<Vec<FileEntry>>,
    applied_documents: AppliedDocuments,
    faults: Vec<Fault>,
    backoff: Backoff,
    retry_at: Option<Instant>,
    resync_at: Option<Instant>,
    remaining: Vec<String>,
    /// Desired content for other servers.
    desired: watch::Sender<DesiredContent>,
    /// Progress of other servers.
    progress: watch::Receiver<AggregatedProgress>,
    /// True if objects without a manifest must still be looked for.
    needs_pruning: bool,
}

/// Reason for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassReason {
    /// Files changed, or the last pass failed.
    Changes,
    /// A full resync is due.
    Resync,
}

impl Manifests {
    /// Creates the follower. Reads use the registry, writes use `requests`.
    #[must_use]
    pub fn new(
        settings: Settings,
        registry: Registry,
        requests: Arc<dyn Requests>,
        metrics: &metrics::Registry,
    ) -> Self {
        Self {
            settings: Arc::new(settings),
            registry,
            requests,
            metrics: Arc::new(Metrics::new(metrics)),
            state: FolderState::default(),
            poll_now: Arc::default(),
        }
    }

    /// Returns the shared state of the folder.
    #[must_use]
    pub fn state(&self) -> FolderState {
        self.state.clone()
    }

    /// Polls the folder at once (SIGHUP).
    pub fn poll_now(&self) {
        self.poll_now.notify_one();
    }

    /// Applies the folder and follows it forever. Documents for other API servers are applied concurrently.
    pub async fn run(self, client: Arc<dyn ForeignApiClient>) {
        let ((desired, desired_receiver), (progress, progress_receiver)) =
            (watch::channel(DesiredContent::default()), watch::channel(AggregatedProgress::default()));
        let applier = AggregatedApplier {
            registry: self.registry.clone(),
            client,
            state: self.state.clone(),
            metrics: Arc::clone(&self.metrics),
            poll_interval: self.settings.poll_interval,
            progress,
        };
        tokio::join!(self.follow_folder(desired, progress_receiver), applier.run(desired_receiver));
    }

    async fn follow_folder(
        self,
        desired: watch::Sender<DesiredContent>,
        progress: watch::Receiver<AggregatedProgress>,
    ) {
        let mut state = FollowState {
            files: None,
            applied_documents: AppliedDocuments::default(),
            faults: Vec::new(),
            backoff: Backoff::new(RETRY_BACKOFF),
            retry_at: None,
            resync_at: None,
            remaining: Vec::new(),
            desired,
            progress,
            needs_pruning: false,
        };
        loop {
            self.poll(&mut state).await;
            self.prune_after_progress(&mut state).await;
            let wait = self.wait(&state);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.poll_now.notified() => {}
                // Fails only if the applier has ended, and the process with it.
                Ok(()) = state.progress.changed() => {}
            }
        }
    }

    /// Returns the time until the next poll.
    fn wait(&self, state: &FollowState) -> Duration {
        let retry = state.retry_at.map(|at| at.saturating_duration_since(Instant::now()));
        retry.map_or(self.settings.poll_interval, |retry| retry.min(self.settings.poll_interval))
    }

    async fn poll(&self, state: &mut FollowState) {
        let (files, reason) = match self.list().await {
            Ok(files) => match self.pass_reason(state, &files) {
                Some(reason) => (files, reason),
                None => return,
            },
            Err(error) => return self.reject(state, &error),
        };
        if state.files.as_ref().is_some_and(|previous| *previous != files) {
            self.wait_until_quiet(files).await;
            state.backoff.reset();
        }
        let settings = Arc::clone(&self.settings);
        let read = blocking(move || content::read(&settings)).await;
        match read {
            Some(Ok(content)) => self.run_pass(state, content, reason).await,
            Some(Err(error)) => self.reject(state, &error),
            // The process is shutting down.
            None => {}
        }
    }

    async fn list(&self) -> Result<Vec<FileEntry>, FolderError> {
        let settings = Arc::clone(&self.settings);
        blocking(move || folder::list(&settings)).await.unwrap_or_else(|| Ok(Vec::new()))
    }

    fn pass_reason(&self, state: &FollowState, files: &[FileEntry]) -> Option<PassReason> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
        if is_due(state.resync_at) {
            return Some(PassReason::Resync);
        }
        let changed = state.files.as_deref() != Some(files);
        (changed || is_due(state.retry_at)).then_some(PassReason::Changes)
    }

    /// Waits until files stop changing, up to a limit.
    async fn wait_until_quiet(&self, mut files: Vec<FileEntry>) {
        for _ in 0..MAX_QUIET_WAITS {
            tokio::time::sleep(QUIET_PERIOD).await;
            match self.list().await {
                Ok(now) if now != files => files = now,
                _ => return,
            }
        }
    }

    fn reject(&self, state: &mut FollowState, error: &FolderError) {
        let text = error.to_string();
        let is_new = state.faults.first().is_none_or(|fault| fault.message != text);
        if is_new {
            tracing::error!(error = text, "cannot read the manifests folder");
            self.metrics.record_unreadable();
        }
        let origin = crate::document::Origin { file: String::new(), document: 0, item: None, line: 0 };
        state.faults = vec![Fault { origin, object: String::new(), message: text.clone() }];
        state.files = None;
        state.needs_pruning = false;
        state.desired.send_modify(|desired| {
            (desired.pass, desired.prune_policy) = (desired.pass + 1, PrunePolicy::Defer)
        });
        self.state.set_unreadable(&text);
    }

    async fn run_pass(&self, state: &mut FollowState, content: FolderContent, reason: PassReason) {
        let started = Instant::now();
        let mut record = match ResourceRecord::load(&self.registry).await {
            Ok(record) => record,
            Err(status) => {
                tracing::warn!(error = %status, "cannot load the record of applied manifests, retrying");
                state.retry_at = Some(Instant::now() + state.backoff.next_wait());
                return;
            }
        };
        let none_applied = AppliedDocuments::default();
        let applied_before =
            if reason == PassReason::Resync { &none_applied } else { &state.applied_documents };
        let result = pass::run(&self.registry, &*self.requests, &mut record, &content, applied_before).await;
        let is_first = state.files.is_none();
        log_result(&result, &state.faults, is_first, started.elapsed());
        // Final only if two passes fail alike: an object created by one pass may take effect after it.
        let is_final = result.is_stuck && result.faults == state.faults;
        self.state.set_pass_result(&content, &result.faults, is_final);
        self.metrics.record_pass(&result);
        if result.faults.is_empty() {
            state.backoff.reset();
            state.retry_at = None;
        } else {
            state.retry_at = Some(Instant::now() + state.backoff.next_wait());
        }
        self.send_desired(state, &result, reason);
        let period = self.settings.resync_period;
        if reason == PassReason::Resync || state.resync_at.is_none() {
            state.resync_at = (!period.is_zero()).then(|| Instant::now() + period);
        }
        state.files = Some(content.files);
        state.applied_documents =
            AppliedDocuments { applied: result.applied, needs_check: !result.faults.is_empty() };
        state.faults = result.faults;
    }

    /// Sends the result to the applier for other servers. Pruning waits for it: objects on other servers are deleted before the
    /// APIServices and Services by which these servers are reached.
    fn send_desired(&self, state: &mut FollowState, result: &PassResult, reason: PassReason) {
        let policy = match () {
            () if !result.faults.is_empty() => PrunePolicy::Defer,
            () => self.prune_policy(result.applied.is_empty() && result.aggregated.is_empty()),
        };
        state.needs_pruning = policy != PrunePolicy::Defer;
        state.desired.send_modify(|desired| {
            desired.pass += 1;
            desired.resyncs += u64::from(reason == PassReason::Resync);
            desired.documents.clone_from(&result.aggregated);
            desired.prune_policy = policy;
        });
    }

    /// Returns the policy for objects without a manifest.
    fn prune_policy(&self, is_empty: bool) -> PrunePolicy {
        match (self.settings.prune, is_empty) {
            (false, _) => PrunePolicy::Keep("--manifests-prune is not set"),
            // A volume that is not mounted looks like an empty folder.
            (true, true) => PrunePolicy::Keep("nothing is deleted for a folder without manifests"),
            (true, false) => PrunePolicy::Delete,
        }
    }

    /// Prunes once other servers have made progress, unless one of them has refused a document.
    async fn prune_after_progress(&self, state: &mut FollowState) {
        let progress = *state.progress.borrow_and_update();
        let DesiredContent { pass, prune_policy, .. } = *state.desired.borrow();
        if !state.needs_pruning || progress.pass < pass || progress.has_refused {
            return;
        }
        match ResourceRecord::load(&self.registry).await {
            Ok(mut record) => {
                state.needs_pruning = false;
                self.prune_all(state, &mut record, prune_policy).await;
            }
            Err(status) => {
                tracing::warn!(
                    error = %status,
                    "cannot load the record of applied manifests, pruning deferred"
                )
            }
        }
    }

    /// Deletes objects without a manifest if the policy is `Delete`; otherwise logs them.
    async fn prune_all(&self, state: &mut FollowState, record: &mut ResourceRecord, policy: PrunePolicy) {
        let candidates =
            match prune::candidates(&self.registry, record, &state.applied_documents.applied).await {
                Ok(candidates) => candidates,
                Err(status) => {
                    tracing::warn!(error = %status, "cannot list the objects to prune");
                    return;
                }
            };
        let mut deleted = 0;
        let mut remaining = Vec::new();
        for object in &candidates {
            let (name, outcome) = (object.display_name(), self.prune(object, policy).await);
            match outcome {
                Ok(()) => {
                    deleted += 1;
                    tracing::info!(object = name, "object deleted, manifest removed");
                }
                Err(reason) => remaining.push(format!("{name} ({reason})")),
            }
        }
        self.metrics.record_pruning(remaining.len(), deleted);
        log::remaining(&remaining, &state.remaining);
        state.remaining = remaining;
    }

    async fn prune(&self, object: &prune::PruneCandidate, policy: PrunePolicy) -> Result<(), String> {
        match policy {
            PrunePolicy::Keep(reason) => Err(reason.to_owned()),
            _ => prune::delete(&self.registry, &*self.requests, object).await,
        }
    }
}

/// Logs the result of a pass, and each new fault once.
fn log_result(result: &PassResult, previous: &[Fault], is_first: bool, took: Duration) {
    let PassResult { created, changed, unchanged, skipped, faults, warnings, .. } = result;
    let new_faults = log::faults(faults, previous);
    log::warnings(warnings);
    let has_recovered = faults.is_empty() && !previous.is_empty();
    if created + changed > 0 || new_faults > 0 || has_recovered || is_first {
        let (failed, duration_ms) = (faults.len(), took.as_millis());
        tracing::info!(created, changed, unchanged, skipped, failed, duration_ms, "manifests applied");
    }
}
