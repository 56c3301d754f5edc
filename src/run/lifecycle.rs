//! The time from the start of a server to the end of its process.

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

/// Runs until the end: reports readiness and then starts the program, if there is one; reloads files and stops by signals. While the program
/// runs, it gets the signals to stop, and its end ends the process, as does the failure of a part.
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

/// The end of the program; never if there is none.
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
    /// The program ended, with this exit code.
    Command(u8),
}

impl Ended {
    /// The exit code. A signal before the start of the program is a failure.
    pub(super) fn exit_code(self, settings: &Settings) -> u8 {
        match self {
            Self::Command(code) => code,
            Self::Stopped(_) if settings.command.is_empty() => 0,
            Self::Stopped(stop) => companion::code_of(stop),
        }
    }
}
