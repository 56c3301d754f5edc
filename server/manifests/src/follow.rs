//! Polls the folder and applies its changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_kit::backoff::{Backoff, Policy};
use portico_kit::metrics;
use portico_kit::tasks::blocking;
use portico_registry::Registry;
use tokio::sync::{Notify, watch};

use crate::aggregated::{Pruning, Settled, Visitor, Wanted};
use crate::document::Fault;
use crate::folder::{self, FolderError, Found};
use crate::log;
use crate::metrics::Metrics;
use crate::other_servers::OtherServers;
use crate::pass::{self, Done, Known};
use crate::prune;
use crate::reading::{self, Reading};
use crate::record::Record;
use crate::requests::Requests;
use crate::settings::Settings;
use crate::state::State;

/// Time without changes before a change of the folder is applied, because files are written one after another.
const SETTLED: Duration = Duration::from_millis(100);
/// Maximum number of such waits.
const MAX_UNSETTLED: usize = 20;
/// Backoff for failed passes without a change of a file.
const RETRY: Policy = Policy::new(Duration::from_millis(500), Duration::from_secs(60), 2.0, 0.2);

/// Follower of the folder. Cheap to clone.
#[derive(Clone)]
pub struct Manifests {
    settings: Arc<Settings>,
    registry: Registry,
    requests: Arc<dyn Requests>,
    metrics: Arc<Metrics>,
    state: State,
    look: Arc<Notify>,
}

/// State between two polls.
struct Memory {
    files: Option<Vec<Found>>,
    known: Known,
    faults: Vec<Fault>,
    backoff: Backoff,
    retry_at: Option<Instant>,
    resync_at: Option<Instant>,
    left: Vec<String>,
    /// Desired content for other servers.
    wanted: watch::Sender<Wanted>,
    /// Progress of other servers.
    settled: watch::Receiver<Settled>,
    /// True if objects without a manifest must still be looked for.
    is_unclean: bool,
}

/// Reason for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Files changed, or the last pass failed.
    Changes,
    /// A full resync is due.
    Everything,
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
            state: State::default(),
            look: Arc::default(),
        }
    }

    /// Returns the shared state of the folder.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.clone()
    }

    /// Polls the folder at once (SIGHUP).
    pub fn look(&self) {
        self.look.notify_one();
    }

    /// Applies the folder and follows it forever. Documents for other API servers are applied concurrently.
    pub async fn run(self, others: Arc<dyn OtherServers>) {
        let ((wanted, to_visit), (settled, visited)) =
            (watch::channel(Wanted::default()), watch::channel(Settled::default()));
        let visitor = Visitor {
            registry: self.registry.clone(),
            others,
            state: self.state.clone(),
            metrics: Arc::clone(&self.metrics),
            look_period: self.settings.look_period,
            settled,
        };
        tokio::join!(self.follow(wanted, visited), visitor.run(to_visit));
    }

    async fn follow(self, wanted: watch::Sender<Wanted>, settled: watch::Receiver<Settled>) {
        let mut memory = Memory {
            files: None,
            known: Known::default(),
            faults: Vec::new(),
            backoff: Backoff::new(RETRY),
            retry_at: None,
            resync_at: None,
            left: Vec::new(),
            wanted,
            settled,
            is_unclean: false,
        };
        loop {
            self.turn(&mut memory).await;
            self.clean_up_settled(&mut memory).await;
            let wait = self.wait(&memory);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.look.notified() => {}
                // Fails only if the applier has ended, and the process with it.
                Ok(()) = memory.settled.changed() => {}
            }
        }
    }

    /// Returns the time until the next poll.
    fn wait(&self, memory: &Memory) -> Duration {
        let retry = memory.retry_at.map(|at| at.saturating_duration_since(Instant::now()));
        retry.map_or(self.settings.look_period, |retry| retry.min(self.settings.look_period))
    }

    async fn turn(&self, memory: &mut Memory) {
        let (files, due) = match self.list().await {
            Ok(files) => match self.due(memory, &files) {
                Some(due) => (files, due),
                None => return,
            },
            Err(error) => return self.refuse(memory, &error),
        };
        if memory.files.as_ref().is_some_and(|before| *before != files) {
            self.settle(files).await;
            memory.backoff.reset();
        }
        let settings = Arc::clone(&self.settings);
        let read = blocking(move || reading::read(&settings)).await;
        match read {
            Some(Ok(reading)) => self.pass(memory, reading, due).await,
            Some(Err(error)) => self.refuse(memory, &error),
            // The process is shutting down.
            None => {}
        }
    }

    async fn list(&self) -> Result<Vec<Found>, FolderError> {
        let settings = Arc::clone(&self.settings);
        blocking(move || folder::list(&settings)).await.unwrap_or_else(|| Ok(Vec::new()))
    }

    fn due(&self, memory: &Memory, files: &[Found]) -> Option<Due> {
        let is_time = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
        if is_time(memory.resync_at) {
            return Some(Due::Everything);
        }
        let changed = memory.files.as_deref() != Some(files);
        (changed || is_time(memory.retry_at)).then_some(Due::Changes)
    }

    /// Waits until files stop changing, up to a limit.
    async fn settle(&self, mut files: Vec<Found>) {
        for _ in 0..MAX_UNSETTLED {
            tokio::time::sleep(SETTLED).await;
            match self.list().await {
                Ok(now) if now != files => files = now,
                _ => return,
            }
        }
    }

    fn refuse(&self, memory: &mut Memory, error: &FolderError) {
        let text = error.to_string();
        let is_new = memory.faults.first().is_none_or(|fault| fault.message != text);
        if is_new {
            tracing::error!(error = text, "cannot read the manifests folder");
            self.metrics.unreadable();
        }
        let origin = crate::document::Origin { file: String::new(), document: 0, item: None, line: 0 };
        memory.faults = vec![Fault { origin, object: String::new(), message: text.clone() }];
        memory.files = None;
        memory.is_unclean = false;
        memory.wanted.send_modify(|wanted| (wanted.pass, wanted.pruning) = (wanted.pass + 1, Pruning::Later));
        self.state.unreadable(&text);
    }

    async fn pass(&self, memory: &mut Memory, reading: Reading, due: Due) {
        let started = Instant::now();
        let mut record = match Record::load(&self.registry).await {
            Ok(record) => record,
            Err(status) => {
                tracing::warn!(error = %status, "cannot load the record of applied manifests, retrying");
                memory.retry_at = Some(Instant::now() + memory.backoff.next_wait());
                return;
            }
        };
        let nothing = Known::default();
        let known = if due == Due::Everything { &nothing } else { &memory.known };
        let done = pass::run(&self.registry, &*self.requests, &mut record, &reading, known).await;
        let is_first = memory.files.is_none();
        report(&done, &memory.faults, is_first, started.elapsed());
        // Final only if two passes fail alike: an object created by one pass may take effect after it.
        let is_final = done.is_stuck && done.faults == memory.faults;
        self.state.passed(&reading, &done.faults, is_final);
        self.metrics.passed(&done);
        if done.faults.is_empty() {
            memory.backoff.reset();
            memory.retry_at = None;
        } else {
            memory.retry_at = Some(Instant::now() + memory.backoff.next_wait());
        }
        self.hand_over(memory, &done, due);
        let period = self.settings.resync_period;
        if due == Due::Everything || memory.resync_at.is_none() {
            memory.resync_at = (!period.is_zero()).then(|| Instant::now() + period);
        }
        memory.files = Some(reading.files);
        memory.known = Known { applied: done.applied, is_doubtful: !done.faults.is_empty() };
        memory.faults = done.faults;
    }

    /// Sends the result to the applier for other servers. Pruning waits for it: objects on other servers are deleted before the
    /// APIServices and Services by which these servers are reached.
    fn hand_over(&self, memory: &mut Memory, done: &Done, due: Due) {
        let pruning = match () {
            () if !done.faults.is_empty() => Pruning::Later,
            () => self.pruning(done.applied.is_empty() && done.aggregated.is_empty()),
        };
        memory.is_unclean = pruning != Pruning::Later;
        memory.wanted.send_modify(|wanted| {
            wanted.pass += 1;
            wanted.resyncs += u64::from(due == Due::Everything);
            wanted.documents.clone_from(&done.aggregated);
            wanted.pruning = pruning;
        });
    }

    /// Returns the policy for objects without a manifest.
    fn pruning(&self, is_empty: bool) -> Pruning {
        match (self.settings.prune, is_empty) {
            (false, _) => Pruning::Kept("--manifests-prune is not set"),
            // A volume that is not mounted looks like an empty folder.
            (true, true) => Pruning::Kept("nothing is deleted for a folder without manifests"),
            (true, false) => Pruning::Asked,
        }
    }

    /// Prunes once other servers have made progress, unless one of them has refused a document.
    async fn clean_up_settled(&self, memory: &mut Memory) {
        let settled = *memory.settled.borrow_and_update();
        let Wanted { pass, pruning, .. } = *memory.wanted.borrow();
        if !memory.is_unclean || settled.pass < pass || settled.has_refused {
            return;
        }
        match Record::load(&self.registry).await {
            Ok(mut record) => {
                memory.is_unclean = false;
                self.clean_up(memory, &mut record, pruning).await;
            }
            Err(status) => {
                tracing::warn!(
                    error = %status,
                    "cannot load the record of applied manifests, pruning deferred"
                )
            }
        }
    }

    /// Deletes objects without a manifest if the policy says so; otherwise logs them.
    async fn clean_up(&self, memory: &mut Memory, record: &mut Record, pruning: Pruning) {
        let left = match prune::left(&self.registry, record, &memory.known.applied).await {
            Ok(left) => left,
            Err(status) => {
                tracing::warn!(error = %status, "cannot list the objects to prune");
                return;
            }
        };
        let mut deleted = 0;
        let mut stays = Vec::new();
        for object in &left {
            let (name, outcome) = (object.named(), self.prune(object, pruning).await);
            match outcome {
                Ok(()) => {
                    deleted += 1;
                    tracing::info!(object = name, "object deleted, manifest removed");
                }
                Err(why) => stays.push(format!("{name} ({why})")),
            }
        }
        self.metrics.pruned(stays.len(), deleted);
        log::left(&stays, &memory.left);
        memory.left = stays;
    }

    async fn prune(&self, object: &prune::Left, pruning: Pruning) -> Result<(), String> {
        match pruning {
            Pruning::Kept(why) => Err(why.to_owned()),
            _ => prune::delete(&self.registry, &*self.requests, object).await,
        }
    }
}

/// Logs the result of a pass, and each new fault once.
fn report(done: &Done, before: &[Fault], is_first: bool, took: Duration) {
    let Done { created, changed, unchanged, skipped, faults, warnings, .. } = done;
    let new = log::faults(faults, before);
    log::warnings(warnings);
    let is_healed = faults.is_empty() && !before.is_empty();
    if created + changed > 0 || new > 0 || is_healed || is_first {
        let (failed, duration_ms) = (faults.len(), took.as_millis());
        tracing::info!(created, changed, unchanged, skipped, failed, duration_ms, "manifests applied");
    }
}
