//! Lifecycle of a server process: readiness, reloads and stop.

use std::pin::pin;

use futures::FutureExt;
use portico_kit::tasks::TaskFailure;

use super::companion::{self, Companion};
use super::failure::Failure;
use super::request::{Request, Stop};
use super::service_manager;
use super::signals::Signals;
use super::unapplied::Unapplied;
use crate::settings::Settings;

/// Runs until a stop signal, the end of the program, or the failure of an essential part. Waits for `ready`, which starts the
/// program of `portico run -- CMD`, and then reports readiness. Reloads files on SIGHUP. While the program runs, stop signals are
/// forwarded to it.
pub(super) async fn run_until_end(
    signals: &mut Signals,
    ready: impl Future<Output = Result<Option<Companion>, Failure>>,
    unapplied: Unapplied,
    failed: impl Future<Output = TaskFailure>,
    reload: impl AsyncFn(),
) -> Result<Ended, Failure> {
    let ended = until_end(signals, ready, unapplied, failed, reload).await;
    service_manager::stopping();
    ended
}

async fn until_end(
    signals: &mut Signals,
    ready: impl Future<Output = Result<Option<Companion>, Failure>>,
    unapplied: Unapplied,
    failed: impl Future<Output = TaskFailure>,
    reload: impl AsyncFn(),
) -> Result<Ended, Failure> {
    let (mut ready, mut failed) = (pin!(ready.fuse()), pin!(failed));
    let (mut unapplied, mut companion) = (pin!(unapplied.failed()), None);
    loop {
        tokio::select! {
            started = &mut ready => {
                companion = started?;
                service_manager::ready();
            }
            failure = &mut unapplied => return Err(failure),
            failure = &mut failed => return Err(Failure::Part(failure)),
            code = end_of(&mut companion) => return code.map(Ended::Command),
            request = signals.next() => match (request, &companion) {
                (Request::Reload, _) => service_manager::reloading(reload()).await,
                (Request::Stop(stop), Some(companion)) => companion.signal(stop),
                (Request::Stop(stop), None) => return Ok(Ended::Stopped(stop)),
            },
        }
    }
}

/// Waits for the end of the program and returns its exit code. Waits forever if there is no program.
async fn end_of(companion: &mut Option<Companion>) -> Result<u8, Failure> {
    match companion {
        Some(companion) => companion.ended().await,
        None => std::future::pending().await,
    }
}

/// Reason for the end of the process.
pub(super) enum Ended {
    /// A signal ended the process, and no program ran.
    Stopped(Stop),
    /// The program ended with this exit code.
    Command(u8),
}

impl Ended {
    /// Returns the exit code. A signal before the program has started counts as a failure.
    pub(super) fn exit_code(self, settings: &Settings) -> u8 {
        match self {
            Self::Command(code) => code,
            Self::Stopped(_) if settings.command.is_empty() => 0,
            Self::Stopped(stop) => companion::code_of(stop),
        }
    }
}
