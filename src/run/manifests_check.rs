//! Server of `portico config check`: a temporary control service in this process, which applies a folder of manifests.

use std::sync::Arc;
use std::time::Instant;

use portico_kit::connection_runtimes::ConnectionRuntimes;
use portico_kit::metrics::Registry;
use portico_kit::offload::Offload;
use portico_kit::tasks::TaskSet;
use portico_kit::telemetry::{LogFormat, Telemetry};
use portico_server::{ManifestsReport, ManifestsSettings};

use super::STACK_BYTES;
use super::failure::Failure;
use super::passed_sockets::PassedSockets;
use super::process::Process;
use super::scratch::Scratch;
use super::server;
use crate::settings::Settings;

/// Log level of the temporary server, which does not log because the report contains all errors.
const SILENT: &str = "off";

/// Applies a folder of manifests to a temporary server with `settings`, and returns the findings.
///
/// # Errors
/// Returns [`Failure`] if the server cannot start or the folder cannot be checked.
pub(crate) fn check_manifests(
    settings: Settings,
    folder: ManifestsSettings,
) -> Result<ManifestsReport, Failure> {
    portico_kit::atomic_file::disable_sync();
    let telemetry = Telemetry::init(LogFormat::Text, SILENT)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let process = {
        let _guard = runtime.enter();
        Process {
            registry: Registry::new(),
            telemetry,
            runtimes: Arc::new(ConnectionRuntimes::start("serving", 1).map_err(Failure::Runtime)?),
            offload: Arc::new(Offload::start("long-work", &TaskSet::new()).map_err(Failure::Runtime)?),
            auditor: None,
            started: Instant::now(),
            sockets: PassedSockets::default(),
        }
    };
    let outcome = runtime.block_on(check_in_scratch_folder(settings, folder, &process));
    runtime.shutdown_background();
    outcome
}

async fn check_in_scratch_folder(
    mut settings: Settings,
    folder: ManifestsSettings,
    process: &Process,
) -> Result<ManifestsReport, Failure> {
    let scratch = Scratch::for_data(&mut settings)?;
    let outcome = check_on_server(&settings, folder, process).await;
    if let Some(scratch) = scratch {
        scratch.remove();
    }
    outcome
}

async fn check_on_server(
    settings: &Settings,
    folder: ManifestsSettings,
    process: &Process,
) -> Result<ManifestsReport, Failure> {
    let server = server::start(settings, process).await?;
    let outcome = tokio::select! {
        report = async {
            server.ready().await;
            server.check_manifests(folder).await.map_err(Failure::Manifests)
        } => report,
        failure = server.failed() => Err(Failure::TaskEnded(failure)),
    };
    server.abort().await;
    outcome
}
