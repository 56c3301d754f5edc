//! Looks at the folder again and again, and applies what changed in it.

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

/// How long a folder must stand still before a change of it is applied: files are written one after another.
const SETTLED: Duration = Duration::from_millis(100);
/// How often that is waited for.
const MAX_UNSETTLED: usize = 20;
/// When what failed is tried again though no file has changed.
const RETRY: Policy = Policy::new(Duration::from_millis(500), Duration::from_secs(60), 2.0, 0.2);

/// The follower. Cheap to clone.
#[derive(Clone)]
pub struct Manifests {
    settings: Arc<Settings>,
    registry: Registry,
    requests: Arc<dyn Requests>,
    metrics: Arc<Metrics>,
    state: State,
    look: Arc<Notify>,
}

/// What it remembers from look to look.
struct Memory {
    files: Option<Vec<Found>>,
    known: Known,
    faults: Vec<Fault>,
    backoff: Backoff,
    retry_at: Option<Instant>,
    resync_at: Option<Instant>,
    left: Vec<String>,
    /// For other servers.
    wanted: watch::Sender<Wanted>,
    /// How far they are.
    settled: watch::Receiver<Settled>,
    /// Whether what left the folder is still to be looked for.
    is_unclean: bool,
}

/// Why a pass is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Files changed, or something failed before.
    Changes,
    /// It is time to apply everything.
    Everything,
}

impl Manifests {
    /// Follows nothing yet. Reads go to the registry, writes to who answers them.
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

    /// What is known now.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.clone()
    }

    /// Looks at the folder at once (SIGHUP).
    pub fn look(&self) {
        self.look.notify_one();
    }

    /// Applies the folder, and follows it for ever; what other API servers keep is applied beside the rest.
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
                // Who would say so has ended where this fails, and with it the process.
                Ok(()) = memory.settled.changed() => {}
            }
        }
    }

    /// Until the next look.
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
            // The process ends.
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

    /// Waits until files do not change any more, for a while at most.
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
        // Once more than once: what a pass has made may have its effect only after it.
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

    /// Has other servers visited. What left the folder is looked for after that: what they keep goes before the APIServices
    /// and Services by which they are reached.
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

    /// What becomes of objects that left the folder.
    fn pruning(&self, is_empty: bool) -> Pruning {
        match (self.settings.prune, is_empty) {
            (false, _) => Pruning::Kept("--manifests-prune is not set"),
            // A volume that is not mounted looks like this.
            (true, true) => Pruning::Kept("nothing is deleted for a folder without manifests"),
            (true, false) => Pruning::Asked,
        }
    }

    /// Deletes what left the folder once other servers were visited, unless one has refused a document.
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

    /// Deletes what left the folder, where that is asked for; else names it.
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

/// Logs what was done, and each fault once.
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
