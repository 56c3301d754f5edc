//! The figures of docs/internals/benchmarks.md: `cargo run --release -p portico-benches -- <name>`.
//!
//! Each bench starts the release binary and, if available, an equally configured peer, drives both through their real
//! endpoints from this process, and reports goals and results. It ends only the processes that it started, and does not depend on
//! Portico's internals.

mod backend;
mod certificates;
mod figures;
mod https;
mod kube;
mod load;
mod nginx;
mod portico;
mod process;
mod registrations;
mod report;
mod server;
mod soak;
mod statistics;
mod torture;
mod webhook;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use certificates::Certificates;
use report::Report;

/// Error of a bench, printed in one line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures Portico, and compares it with peers.
#[derive(Clone, Debug, Parser)]
#[command(name = "portico-benches", args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Options {
    /// Run a proof instead of benches.
    #[command(subcommand)]
    proof: Option<Proof>,
    /// Benches to run.
    #[arg(value_enum, required = true)]
    benches: Vec<Bench>,
    /// Interleaved rounds; figures are medians over them.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Duration of each load, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// APIServices of `create`, per round.
    #[arg(long, default_value_t = 30_000)]
    objects: usize,
    /// Connections that the 64 clients of `create` share; fewer cost the clients less.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// ConfigMaps of `scale-objects`, at most: 12,500, doubled until they are more, and this many at last.
    #[arg(long, default_value_t = 200_000)]
    most: usize,
    /// Bytes of objects that the servers of `scale-objects` cache in memory; 0: all of them.
    #[arg(long, default_value_t = 0)]
    cache_max_bytes: u64,
    /// Folder for data folders; figures of writes depend on this disk. Default: the temporary folder.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Another build of Portico, driven in turns with this one by `objects`, `proxy`, `hostile` and `admission`.
    #[arg(long)]
    baseline: Option<PathBuf>,
    /// Additional output file for the figures, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs that pass or fail instead of producing figures (docs/internals/torture.md).
#[derive(Clone, Debug, Subcommand)]
enum Proof {
    /// Clients and watchers during faults: no event may be lost, duplicated, reordered or invented.
    Torture(torture::Torture),
    /// Objects are created and deleted while memory is measured.
    Soak(soak::Soak),
}

/// The benches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bench {
    /// From exec to the first 200 of /readyz.
    Startup,
    /// Idle memory of the all-in-one.
    Memory,
    /// From POST of an APIService to the first proxied 200.
    FirstRequest,
    /// Proxied requests, compared with nginx.
    Proxy,
    /// Creations by gRPC until acknowledged, and until the last condition is written.
    Create,
    /// Effect of 100 dead backends on a live one.
    DeadBackends,
    /// Control service and facade as two processes.
    Split,
    /// Memory with 5,000 APIServices and 50 CAs.
    CaMemory,
    /// GET, POST and PUT of ConfigMaps of 1 KiB.
    Objects,
    /// Creations with a quota, compared with those without.
    Quota,
    /// LIST of many ConfigMaps.
    List,
    /// Many watches of few changes.
    Watch,
    /// Creations with 10,000 watches of other objects.
    Dispatch,
    /// First responses of a new server: kubectl get pods, OpenAPI.
    Cold,
    /// Bodies that are designed to be expensive.
    Hostile,
    /// CustomResourceDefinitions: hundreds and thousands of them.
    Definitions,
    /// Custom resources: creations, LISTs, expensive schemas.
    CustomResources,
    /// Creations with webhooks and policies.
    Admission,
    /// Effect of one user's flood on another user's requests.
    Fairness,
    /// Cost of the handler chain for a request.
    Chain,
    /// Control services that share a PostgreSQL database.
    Postgres,
    /// Increasing numbers of objects.
    ScaleObjects,
    /// Ten thousand watchers, and a restart of their facade.
    ScaleWatchers,
    /// Increasing numbers of APIServices and definitions.
    ScaleApis,
    /// All of these.
    All,
}

const EACH: [Bench; 24] = [
    Bench::Startup,
    Bench::Memory,
    Bench::FirstRequest,
    Bench::Proxy,
    Bench::Create,
    Bench::DeadBackends,
    Bench::Split,
    Bench::CaMemory,
    Bench::Objects,
    Bench::Quota,
    Bench::List,
    Bench::Watch,
    Bench::Dispatch,
    Bench::Cold,
    Bench::Hostile,
    Bench::Definitions,
    Bench::CustomResources,
    Bench::Admission,
    Bench::Fairness,
    Bench::Chain,
    Bench::Postgres,
    Bench::ScaleObjects,
    Bench::ScaleWatchers,
    Bench::ScaleApis,
];

/// Input of every bench.
struct BenchContext {
    options: Options,
    certificates: Certificates,
    folder: tempfile::TempDir,
}

impl BenchContext {
    fn prepare(options: Options) -> Result<Self, Failure> {
        let of_proof = match &options.proof {
            Some(Proof::Torture(torture)) => torture.dir.clone(),
            Some(Proof::Soak(soak)) => soak.dir.clone(),
            None => None,
        };
        let parent = options.dir.clone().or(of_proof).unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("portico-bench-").tempdir_in(parent)?;
        let certificates = Certificates::make(folder.path())?;
        Ok(Self { options, certificates, folder })
    }

    /// Creates a new, empty folder.
    fn new_folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = tempfile::Builder::new().prefix(name).tempdir_in(self.folder.path())?;
        Ok(folder.keep())
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match measure(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::note(&format!("failed: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn measure(options: Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let setting = BenchContext::prepare(options)?;
    match &setting.options.proof {
        Some(Proof::Torture(torture)) => return runtime.block_on(torture::run(&setting, torture)),
        Some(Proof::Soak(soak)) => return runtime.block_on(soak::run(&setting, soak)),
        None => {}
    }
    let mut report = Report::begin();
    let wanted = |bench: &Bench| setting.options.benches.iter().any(|b| b == bench || *b == Bench::All);
    let outcome = runtime.block_on(async {
        for bench in EACH.into_iter().filter(wanted) {
            report::note(&format!("== {bench:?}, load average {}", report::load_average()));
            run(bench, &setting, &mut report).await.map_err(|failure| format!("{bench:?}: {failure}"))?;
        }
        Ok(())
    });
    report.print(setting.options.json.as_deref())?;
    outcome
}

async fn run(bench: Bench, setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    match bench {
        Bench::Startup => figures::startup::measure(setting, report).await,
        Bench::Memory => figures::memory::measure(setting, report).await,
        Bench::FirstRequest => figures::first_request::measure(setting, report).await,
        Bench::Proxy => figures::proxy::measure(setting, report).await,
        Bench::Create => figures::create::measure(setting, report).await,
        Bench::DeadBackends => figures::dead_backends::measure(setting, report).await,
        Bench::Split => figures::split::measure(setting, report).await,
        Bench::CaMemory => figures::ca_memory::measure(setting, report).await,
        Bench::Objects => figures::objects::measure(setting, report).await,
        Bench::Quota => figures::quota::measure(setting, report).await,
        Bench::List => figures::list::measure(setting, report).await,
        Bench::Watch => figures::watch::measure(setting, report).await,
        Bench::Dispatch => figures::dispatch::measure(setting, report).await,
        Bench::Cold => figures::first_responses::measure(setting, report).await,
        Bench::Hostile => figures::hostile::measure(setting, report).await,
        Bench::Definitions => figures::definitions::measure(setting, report).await,
        Bench::CustomResources => figures::custom_resources::measure(setting, report).await,
        Bench::Admission => figures::admission::measure(setting, report).await,
        Bench::Fairness => figures::fairness::measure(setting, report).await,
        Bench::Chain => figures::chain::measure(setting, report).await,
        Bench::Postgres => figures::postgres::measure(setting, report).await,
        Bench::ScaleObjects => figures::scale::objects::measure(setting, report).await,
        Bench::ScaleWatchers => figures::scale::watchers::measure(setting, report).await,
        Bench::ScaleApis => figures::scale::apis::measure(setting, report).await,
        Bench::All => Ok(()),
    }
}
