//! Runs a server from its settings until a signal ends it.

mod addresses;
mod banner;
mod companion;
mod facade;
mod failure;
mod lifecycle;
mod manifests_check;
mod passed_sockets;
mod process;
mod request;
mod scratch;
mod server;
#[cfg(unix)]
mod service_manager;
#[cfg(not(unix))]
#[path = "run/no_service_manager.rs"]
mod service_manager;
mod signals;
mod unapplied_manifests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_auditor::{AuditSettings, Auditor};
use portico_kit::connection_runtimes::ConnectionRuntimes;
use portico_kit::metrics::Registry;
use portico_kit::offload::Offload;
use portico_kit::spans::SpanExport;
use portico_kit::tasks::TaskSet;
use portico_kit::telemetry::{LogFormat, Telemetry};

use crate::settings::{LoggingFormat, Role, Settings};
use addresses::AddressesFile;
use companion::{Companion, ServerLocation};
pub(crate) use failure::Failure;
use lifecycle::run_until_end;
pub(crate) use manifests_check::check_manifests;
use passed_sockets::PassedSockets;
use process::Process;
use scratch::Scratch;
use signals::Signals;
use unapplied_manifests::UnappliedReporter;

/// Stack size of a worker thread in bytes. It is large because decoders recurse once per nesting level of a document.
const STACK_BYTES: usize = 8 << 20;

/// Returns the line that `portico version` prints: name and versions.
pub(crate) fn version() -> String {
    format!("portico {}", version_numbers())
}

/// Returns the version of Portico, and the version of Kubernetes that it serves.
pub(crate) fn version_numbers() -> String {
    let version = portico_facade::VersionInfo::default();
    format!("{} (Kubernetes {})", env!("CARGO_PKG_VERSION"), version.git_version)
}

/// Runs a server until a signal stops it or the program of `portico run -- CMD` ends, and returns the exit code.
///
/// # Errors
/// Returns [`Failure`] if the server cannot start or an essential part of it ends.
pub(crate) fn run(role: Role, mut settings: Settings, started: Instant) -> Result<u8, Failure> {
    let sockets = PassedSockets::take(role)?;
    sockets.set_addresses(&mut settings)?;
    if settings.store.unsafe_no_fsync {
        portico_kit::atomic_file::disable_sync();
    }
    let format = match settings.process.logging_format {
        LoggingFormat::Text => LogFormat::Text,
        LoggingFormat::Json => LogFormat::Json,
    };
    let telemetry = Telemetry::init(format, &settings.process.verbosity)?;
    for flag in &settings.ignored {
        tracing::warn!(flag = flag.name, reason = flag.reason, "flag of kube-apiserver has no effect");
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if settings.process.worker_threads > 0 {
        runtime.worker_threads(settings.process.worker_threads);
    }
    runtime.thread_stack_size(STACK_BYTES);
    let runtime = runtime.enable_all().build().map_err(Failure::Runtime)?;
    let registry = Registry::for_process(settings.metrics.choice()?);
    let span_export = start_span_export(&settings, &registry, &runtime)?;
    let auditor = {
        let _guard = runtime.enter();
        let audit = AuditSettings { tail: settings.process.console, ..settings.audit.settings()? };
        Auditor::start(&audit, &registry)?
    };
    let process = Process {
        registry,
        telemetry: telemetry.clone(),
        runtimes: Arc::new(
            ConnectionRuntimes::start("serving", serving_threads(&settings)).map_err(Failure::Runtime)?,
        ),
        offload: Arc::new(Offload::start("long-work", &TaskSet::new()).map_err(Failure::Runtime)?),
        auditor: auditor.clone(),
        sockets,
        started,
    };
    let drain = settings.serving.shutdown_drain;
    let outcome = runtime.block_on(async {
        let outcome = run_role(role, settings, process).await;
        // All requests have ended, so no audit event is missing.
        if let Some(auditor) = auditor {
            auditor.shutdown().await;
        }
        outcome
    });
    if let Some(span_export) = span_export {
        span_export.finish();
    }
    match drain {
        true => runtime.shutdown_timeout(Duration::from_secs(1)),
        false => runtime.shutdown_background(),
    }
    if outcome.is_ok() {
        tracing::info!("stopped");
    }
    telemetry.flush();
    outcome
}

async fn run_role(role: Role, mut settings: Settings, process: Process) -> Result<u8, Failure> {
    let signals = Signals::listen(settings.process.exit_with_stdin).map_err(Failure::Runtime)?;
    // From here on, the temporary folder is removed however the server ends.
    let scratch = Scratch::for_data(&mut settings)?;
    let outcome = match role {
        Role::AllInOne => all_in_one(settings, process, signals).await,
        Role::Server => server_alone(settings, process, signals).await.map(|()| 0),
        Role::Facade => facade_alone(settings, process, signals).await.map(|()| 0),
    };
    if let Some(scratch) = scratch {
        scratch.remove();
    }
    outcome
}

/// Starts the export of spans if a collector is configured. Must be called before anything creates spans.
fn start_span_export(
    settings: &Settings,
    registry: &Registry,
    runtime: &tokio::runtime::Runtime,
) -> Result<Option<SpanExport>, Failure> {
    let Some(spans) = settings.tracing.spans()? else { return Ok(None) };
    let _guard = runtime.enter();
    Ok(Some(portico_kit::spans::start(&spans, registry)?))
}

/// Returns the number of threads that serve connections, which is also the number of shared worker threads.
fn serving_threads(settings: &Settings) -> usize {
    match settings.process.worker_threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

async fn all_in_one(settings: Settings, process: Process, mut signals: Signals) -> Result<u8, Failure> {
    let auditor = process.auditor.clone();
    let server = server::start(&settings, &process).await?;
    let facade = facade::start_with_server(&settings, &process, &server)?;
    facade.add_own_listener(server.address());
    server.advertise(facade.addr());
    let (served_ca, url) =
        (facade::serving_ca(&settings, &server)?, facade::facade_url(&settings, facade.addr()));
    let kubeconfig = server.write_kubeconfigs(Some((url.clone(), served_ca)))?;
    let (file, grpc) = (AddressesFile::new(settings.process.addresses_file.clone()), server.control_name());
    let ready = async {
        facade.ready().await;
        file.write(Some(facade.addr()), Some(server.address())).map_err(Failure::Addresses)?;
        if settings.command.is_empty() {
            banner::print_ready(
                &settings,
                process.started,
                Some(facade.addr()),
                Some(grpc.clone()),
                &kubeconfig,
            );
        }
        let location =
            ServerLocation { kubeconfig: &kubeconfig, url: &url, grpc: &grpc, certs: &settings.cert_dir() };
        Companion::start(&settings.command, &location)
    };
    let reload = async || {
        server.reload().await;
        log_file_errors(facade.reload().await);
        reload_policy(auditor.as_deref()).await;
    };
    let failed = async {
        tokio::select! { f = server.failed() => f, f = facade.failed() => f }
    };
    let unapplied = UnappliedReporter::new(&server, &settings);
    let outcome = run_until_end(&mut signals, ready, unapplied, failed, reload).await;
    file.remove();
    match settings.serving.shutdown_drain {
        true => facade.shutdown().await,
        false => facade.shutdown_at_once(),
    }
    stop_server(&settings, server).await;
    outcome.map(|end_reason| end_reason.exit_code(&settings))
}

async fn stop_server(settings: &Settings, server: portico_server::Server) {
    match settings.serving.shutdown_drain {
        true => server.stop().await,
        false => server.abort().await,
    }
}

async fn server_alone(settings: Settings, process: Process, mut signals: Signals) -> Result<(), Failure> {
    let auditor = process.auditor.clone();
    let server = server::start(&settings, &process).await?;
    // By default, facades in other processes serve with certificates that the internal CA has signed.
    let address = SocketAddr::new(settings.serving.bind_address, settings.serving.secure_port);
    let facade =
        (address.port() != 0).then(|| (facade::facade_url(&settings, address), server.internal_ca()));
    let kubeconfig = server.write_kubeconfigs(facade)?;
    let file = AddressesFile::new(settings.process.addresses_file.clone());
    let ready = async {
        server.ready().await;
        file.write(None, Some(server.address())).map_err(Failure::Addresses)?;
        banner::print_ready(&settings, process.started, None, Some(server.control_name()), &kubeconfig);
        Ok(None)
    };
    let reload = async || {
        server.reload().await;
        reload_policy(auditor.as_deref()).await;
    };
    let unapplied = UnappliedReporter::new(&server, &settings);
    let outcome = run_until_end(&mut signals, ready, unapplied, server.failed(), reload).await;
    file.remove();
    stop_server(&settings, server).await;
    outcome.map(drop)
}

async fn facade_alone(settings: Settings, process: Process, mut signals: Signals) -> Result<(), Failure> {
    let auditor = process.auditor.clone();
    let tasks = TaskSet::new();
    let facade = facade::start_alone(&settings, &process, &tasks).await?;
    let file = AddressesFile::new(settings.process.addresses_file.clone());
    let kubeconfig = settings.control.control_kubeconfig.first().cloned().unwrap_or_default();
    let ready = async {
        facade.ready().await;
        file.write(Some(facade.addr()), None).map_err(Failure::Addresses)?;
        banner::print_ready(&settings, process.started, Some(facade.addr()), None, &kubeconfig);
        Ok(None)
    };
    let reload = async || {
        log_file_errors(facade.reload().await);
        reload_policy(auditor.as_deref()).await;
    };
    let outcome =
        run_until_end(&mut signals, ready, UnappliedReporter::without_folder(), facade.failed(), reload)
            .await;
    file.remove();
    match settings.serving.shutdown_drain {
        true => facade.shutdown().await,
        false => facade.shutdown_at_once(),
    }
    // The tasks end last: until requests end, they may fail over to another control service.
    tasks.cancel();
    outcome.map(drop)
}

async fn reload_policy(auditor: Option<&Auditor>) {
    if let Some(auditor) = auditor {
        log_file_errors(auditor.reload().await.into_iter().collect());
    }
}

fn log_file_errors(errors: Vec<portico_kit::certs::FileError>) {
    for error in errors {
        tracing::error!(%error, "cannot reload a file, using its previous content");
    }
}
