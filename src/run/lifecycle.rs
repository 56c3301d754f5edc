//! Lifecycle of a server process: readiness, reloads and stop.

use std::pin::pin;

use futures::FutureExt;
use portico_kit::tasks::TaskFailure;

use super::companion::{self, Companion};
use super::failure::Failure;
use super::request::{Request, Stop};
use super::service_manager;
use super::signals::Signals;
use super::unapplied_manifests::UnappliedReporter;
use crate::settings::Settings;

/// Runs until a stop signal, the end of the program, or the failure of an essential part. Waits for `ready`, which starts the
/// program of `portico run -- CMD`, and then reports readiness. Reloads files on SIGHUP. While the program runs, stop signals are
/// forwarded to it.
pub(super) async fn run_until_end(
    signals: &mut Signals,
    ready: impl Future<Output = Result<Option<Companion>, Failure>>,
    unapplied: UnappliedReporter,
    failed: impl Future<Output = TaskFailure>,
    reload: impl AsyncFn(),
) -> Result<EndReason, Failure> {
    let result = until_end(signals, ready, unapplied, failed, reload).await;
    service_manager::stopping();
    result
}

async fn until_end(
    signals: &mut Signals,
    ready: impl Future<Output = Result<Option<Companion>, Failure>>,
    unapplied: UnappliedReporter,
    failed: impl Future<Output = TaskFailure>,
    reload: impl AsyncFn(),
) -> Result<EndReason, Failure> {
    let (mut ready, mut failed) = (pin!(ready.fuse()), pin!(failed));
    let (mut unapplied, mut companion) = (pin!(unapplied.report()), None);
    loop {
        tokio::select! {
            started = &mut ready => {
                companion = started?;
                service_manager::ready();
            }
            failure = &mut unapplied => return Err(failure),
            failure = &mut failed => return Err(Failure::TaskEnded(failure)),
            code = wait_for_companion(&mut companion) => return code.map(EndReason::Command),
            request = signals.next() => match (request, &companion) {
                (Request::Reload, _) => service_manager::reloading(reload()).await,
                (Request::Stop(stop), Some(companion)) => companion.signal(stop),
                (Request::Stop(stop), None) => return Ok(EndReason::Stopped(stop)),
            },
        }
    }
}

/// Waits for the end of the program and returns its exit code. Waits forever if there is no program.
async fn wait_for_companion(companion: &mut Option<Companion>) -> Result<u8, Failure> {
    match companion {
        Some(companion) => companion.wait().await,
        None => std::future::pending().await,
    }
}

/// Reason for the end of the process.
pub(super) enum EndReason {
    /// A signal ended the process, and no program ran.
    Stopped(Stop),
    /// The program ended with this exit code.
    Command(u8),
}

impl EndReason {
    /// Returns the exit code. A signal before the program has started counts as a failure.
    pub(super) fn exit_code(self, settings: &Settings) -> u8 {
        match self {
            Self::Command(code) => code,
            Self::Stopped(_) if settings.command.is_empty() => 0,
            Self::Stopped(stop) => companion::signal_exit_code(stop),
        }
    }
}
