//! SIGTERM, SIGINT and, where that is wanted, the end of standard input ask for a clean exit, SIGHUP for certificates, token files and the audit policy to be read again.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io;

use portico_gostd::os::error_text;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::request::{Request, Stop};
use system::Listened;
pub(super) use system::send;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// What the process listens to from now on.
pub(super) struct Signals {
    signals: Listened,
    /// `--exit-with-stdin`
    input: Option<File>,
}

impl Signals {
    pub(super) fn listen(exit_with_stdin: bool) -> io::Result<Self> {
        let input = exit_with_stdin.then(system::input).transpose()?.map(File::from_std);
        Ok(Self { signals: Listened::listen()?, input })
    }

    /// The next thing that is asked for. Cancel safe.
    pub(super) async fn next(&mut self) -> Request {
        tokio::select! {
            asked = self.signals.next() => asked,
            () = end_of(&mut self.input) => Request::Stop(Stop::Terminate),
        }
    }
}

/// Never, where nobody waits for it. What is written meanwhile means nothing; where standard input cannot be read it has ended.
async fn end_of(input: &mut Option<File>) {
    let Some(input) = input else { return std::future::pending().await };
    let mut bytes = [0; 256];
    loop {
        match input.read(&mut bytes).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => return tracing::warn!(error = error_text(&error), "standard input cannot be read"),
        }
    }
}
