//! SIGTERM, SIGINT and, with `--exit-with-stdin`, the end of standard input stop the process; SIGHUP reloads certificates, token
//! files and the audit policy.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io;

use portico_gostd::os::error_text;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::request::{Request, Stop};
use system::SignalHandlers;
pub(super) use system::send;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// Sources of stop and reload requests to the process.
pub(super) struct Signals {
    signals: SignalHandlers,
    /// Standard input, if `--exit-with-stdin` is set.
    input: Option<File>,
}

impl Signals {
    pub(super) fn listen(exit_with_stdin: bool) -> io::Result<Self> {
        let input = exit_with_stdin.then(system::input).transpose()?.map(File::from_std);
        Ok(Self { signals: SignalHandlers::listen()?, input })
    }

    /// Waits for the next request. Cancel safe.
    pub(super) async fn next(&mut self) -> Request {
        tokio::select! {
            request = self.signals.next() => {
                if let Request::Stop(stop) = request {
                    tracing::info!(signal = stop.name(), "stop requested");
                }
                request
            }
            () = wait_for_end(&mut self.input) => {
                tracing::info!("stop requested: end of standard input");
                Request::Stop(Stop::Terminate)
            }
        }
    }
}

/// Waits for the end of standard input or a read error, or forever without `--exit-with-stdin`. The input is discarded.
async fn wait_for_end(input: &mut Option<File>) {
    let Some(input) = input else { return std::future::pending().await };
    let mut bytes = [0; 256];
    loop {
        match input.read(&mut bytes).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                return tracing::warn!(error = error_text(&error), "cannot read standard input, stopping");
            }
        }
    }
}
