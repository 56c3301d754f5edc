//! `portico-benches torture`: concurrent clients and watchers on real processes with injected faults, and a check that no
//! event was lost, duplicated, reordered or invented (docs/internals/torture.md).
//!
//! Order of a run: start a cluster, run clients, watchers and faults (`faults.rs`) for the given time, heal, wait until every
//! watcher has caught up, restart everything, read everything, and check the whole history (`linear.rs`, `watch_check.rs`).

mod client;
mod cluster;
mod faults;
mod history;
mod linear;
mod node;
mod object;
mod observed_changes;
mod sequence;
#[cfg(test)]
mod simulation;
mod transport;
mod verdict;
mod watch_check;
mod watch_record;
mod watcher;
mod wire;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use parking_lot::Mutex;
use portico_kit::tasks::TaskSet;
use portico_tests::disk::Shim;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_util::sync::CancellationToken;

use client::{Actor, Recorder};
use cluster::{Cluster, Topology};
use transport::Transport;
use verdict::Verdict;
use watch_record::{Selection, WatcherRecord};
use watcher::Watcher;

use crate::portico::binary;
use crate::process::wait_until;
use crate::report::note;
use crate::{BenchContext, Failure};

/// Options of a torture run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Torture {
    /// Duration of the faults, in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Seed of the random numbers; random by default. A seed reproduces the requests and faults, but not their timing.
    #[arg(long)]
    seed: Option<u64>,
    /// Topologies to test, one after the other.
    #[arg(long, value_enum, default_values_t = [Topology::AllInOne, Topology::Split, Topology::Postgres, Topology::Etcd], value_delimiter = ',')]
    topology: Vec<Topology>,
    /// Clients, half of them over HTTPS to the facade and half over gRPC to the control services.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Objects that the clients write concurrently.
    #[arg(long, default_value_t = 12)]
    objects: usize,
    /// Let the disk lose synced data: the run must fail, which proves that faults are detected.
    #[arg(long)]
    lying_disk: bool,
    /// Folder for logs and the history (JSON lines).
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Folder for data folders. Default: the temporary folder.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// Runs the topologies; fails if a rule was violated.
pub(crate) async fn run(setting: &BenchContext, options: &Torture) -> Result<(), Failure> {
    let seed = options.seed.unwrap_or_else(|| rand::random_range(0..1_000_000));
    let shim = match Shim::compile(&setting.new_folder("shim-")?)? {
        Ok(shim) => Some(shim),
        Err(why) => {
            portico_tests::report_skip(&format!("torture: disk and clock faults: {why}"));
            None
        }
    };
    let mut broken = 0;
    for topology in &options.topology {
        match TortureRun::start(setting, options, *topology, seed, shim.as_ref()).await? {
            Some(scene) => broken += scene.execute(setting, options).await?,
            // The search for PostgreSQL or etcd has reported why.
            None => note(&format!("{topology:?}: skipped")),
        }
    }
    if broken > 0 {
        return Err(format!("seed {seed}: {broken} violations").into());
    }
    Ok(())
}

/// A cluster, its clients and its watchers.
struct TortureRun {
    topology: Topology,
    seed: u64,
    cluster: Cluster,
    recorder: Arc<Recorder>,
    watchers: Vec<RunningWatcher>,
    watching: TaskSet,
}

impl TortureRun {
    async fn start(
        setting: &BenchContext,
        options: &Torture,
        topology: Topology,
        seed: u64,
        shim: Option<&Shim>,
    ) -> Result<Option<Self>, Failure> {
        let Some(mut cluster) = Cluster::start(setting, topology, &binary()?, shim).await? else {
            return Ok(None);
        };
        let mut client = cluster.endpoint(setting)?.client().await?;
        let namespace = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, object::NAMESPACE);
        client.send_ok(http::Method::POST, "/api/v1/namespaces", namespace).await?;
        if options.lying_disk {
            cluster
                .nodes
                .iter_mut()
                .filter_map(|node| node.shim.as_mut())
                .try_for_each(Shim::ignore_syncs)?;
        }
        let recorder = Arc::new(Recorder::new(options.objects));
        let (watchers, watching) = (Vec::new(), TaskSet::new());
        Ok(Some(Self { topology, seed, cluster, recorder, watchers, watching }))
    }

    /// Executes the run; returns the number of violations.
    async fn execute(mut self, setting: &BenchContext, options: &Torture) -> Result<usize, Failure> {
        note(&format!("{:?}, seed {}, {} s", self.topology, self.seed, options.seconds));
        let mut random = StdRng::seed_from_u64(self.seed);
        self.watch(setting)?;
        let (stop, acting, faults_end) = (CancellationToken::new(), TaskSet::new(), CancellationToken::new());
        for (at, transport) in self.transports(setting, options.clients)?.into_iter().enumerate() {
            let name =
                format!("{}-{at}", if matches!(transport, Transport::Grpc(_)) { "grpc" } else { "https" });
            let actor = Actor {
                name,
                transport,
                recorder: self.recorder.clone(),
                seed: random.random(),
                failure: String::new(),
            };
            acting.spawn("client", actor.run(stop.clone()));
        }
        let timer = faults_end.clone();
        let time = Duration::from_secs(options.seconds);
        acting.spawn("timer", async move {
            tokio::time::sleep(time).await;
            timer.cancel();
        });
        let counts = faults::run(&mut self.cluster, &mut random, &faults_end).await;
        stop.cancel();
        let outcome = match counts {
            Ok(counts) => self.finish(setting, &acting, &mut random).await.map(|late| (counts, late)),
            Err(failure) => Err(failure),
        };
        self.watching.cancel();
        let verdict = match outcome {
            Ok((counts, late)) => Verdict::of(&self.recorder, self.watched(), &self.cluster, counts, late)?,
            Err(failure) => {
                self.keep(options, None)?;
                return Err(format!("{:?}, seed {}: {failure}", self.topology, self.seed).into());
            }
        };
        self.keep(options, Some(&verdict))?;
        let mut out = std::io::stdout();
        out.write_all(verdict.print(self.topology, self.seed).as_bytes())?;
        Ok(verdict.violations.len())
    }

    fn transports(&self, setting: &BenchContext, clients: usize) -> Result<Vec<Transport>, Failure> {
        let (endpoint, controls) = (self.cluster.endpoint(setting)?, self.cluster.controls()?);
        let each = |at: usize| match controls.get(at / 2 % controls.len().max(1)) {
            Some(control) if at % 2 == 1 => Transport::Grpc(control.clone()),
            _ => Transport::Https(endpoint.clone(), None),
        };
        Ok((0..clients).map(each).collect())
    }

    fn watch(&mut self, setting: &BenchContext) -> Result<(), Failure> {
        let group = |name: &str| Selection::Group(name.to_owned());
        let kinds = [
            ("all", Selection::All, 0, 0),
            ("all, slow", Selection::All, 60, 0),
            ("all, cut", Selection::All, 0, 40),
            ("group a", group("a"), 0, 0),
            ("group b, cut", group("b"), 0, 25),
            ("object-0", Selection::Name("object-0".to_owned()), 0, 0),
        ];
        for (name, selection, slow, cut_every) in kinds {
            let (segments, until) = (Vec::new(), Arc::new(AtomicU64::new(0)));
            let record =
                WatcherRecord { name: name.to_owned(), selection: selection.clone(), segments, resumed: 0 };
            let record = Arc::new(Mutex::new(record));
            let watcher = Watcher {
                selection,
                read_delay: Duration::from_millis(slow),
                cut_every,
                endpoint: self.cluster.endpoint(setting)?,
                recorder: self.recorder.clone(),
                until: until.clone(),
            };
            self.watching.spawn_until_cancelled("watcher", watcher.run(record.clone()));
            self.watchers.push((record, until));
        }
        Ok(())
    }

    fn watched(&self) -> Vec<WatcherRecord> {
        self.watchers.iter().map(|(record, _)| record.lock().clone()).collect()
    }

    /// Heals, waits until watchers have caught up, restarts everything and reads it; returns the watchers that did not catch up.
    async fn finish(
        &mut self,
        setting: &BenchContext,
        acting: &TaskSet,
        random: &mut StdRng,
    ) -> Result<Vec<String>, Failure> {
        self.cluster.heal().await?;
        let answered = wait_until("every client has finished its last operation", async || {
            Ok(acting.running().is_empty().then_some(()))
        });
        self.cluster.run_supervised(answered).await?;
        let mut last: Vec<Actor> = self
            .transports(setting, 2 * self.cluster.controls()?.len())?
            .into_iter()
            .enumerate()
            .map(|(at, transport)| {
                let (name, recorder) = (format!("last-{at}"), self.recorder.clone());
                Actor { name, transport, recorder, seed: 0, failure: String::new() }
            })
            .collect();
        let writer = last.first_mut().ok_or("no control service accepts the last writes")?;
        self.cluster.run_supervised(write_last_objects(writer, &self.watchers)).await?;
        let watching = &self.watching;
        let caught_up = wait_until("every watcher has caught up with the last writes", async || {
            Ok(watching.running().is_empty().then_some(()))
        });
        let caught_up = self.cluster.run_supervised(caught_up).await;
        let mut late = Vec::new();
        if caught_up.is_err() {
            let behind = self.watchers.iter().filter(|(record, until)| {
                let reached = record.lock().segments.last().map_or(0, |segment| segment.reached);
                reached < until.load(Ordering::Relaxed)
            });
            late.extend(behind.map(|(record, _)| record.lock().name.clone()));
        }
        self.cluster.restart(random.random_bool(0.5)).await?;
        for actor in &mut last {
            let what = format!("{} has read everything", actor.name);
            let read = wait_until(&what, async || Ok(actor.list().await.then_some(())));
            self.cluster.run_supervised(read).await?;
        }
        Ok(late)
    }

    fn keep(&self, options: &Torture, verdict: Option<&Verdict>) -> Result<(), Failure> {
        let Some(keep) = &options.keep else { return Ok(()) };
        let folder = keep.join(format!("{:?}-{}", self.topology, self.seed).to_lowercase());
        std::fs::create_dir_all(&folder)?;
        for node in &self.cluster.nodes {
            std::fs::copy(node.log(), folder.join(format!("{}.log", node.name)))?;
        }
        let mut history = std::io::BufWriter::new(std::fs::File::create(folder.join("history.jsonl"))?);
        for operation in self.recorder.operations.lock().iter() {
            serde_json::to_writer(&mut history, operation)?;
            history.write_all(b"\n")?;
        }
        for watched in self.watched() {
            serde_json::to_writer(&mut history, &watched)?;
            history.write_all(b"\n")?;
        }
        for violation in verdict.iter().flat_map(|verdict| &verdict.violations) {
            serde_json::to_writer(&mut history, violation)?;
            history.write_all(b"\n")?;
        }
        Ok(history.flush()?)
    }
}

/// Record of a watcher, and the revision that it must reach.
type RunningWatcher = (Arc<Mutex<WatcherRecord>>, Arc<AtomicU64>);

/// Makes the last writes, which each watcher must see.
async fn write_last_objects(writer: &mut Actor, watchers: &[RunningWatcher]) -> Result<(), Failure> {
    for (object, group) in [("end", "a"), ("end-b", "b"), ("object-0", "a")] {
        let revision = writer.write_last(object, group).await?;
        for (record, until) in watchers {
            let awaited = match &record.lock().selection {
                Selection::All => object == "object-0",
                Selection::Group(of) => of == group && object != "object-0",
                Selection::Name(name) => name == object,
            };
            if awaited {
                until.store(revision, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}
