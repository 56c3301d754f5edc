//! SIGTERM, SIGINT and, where that is wanted, the end of standard input ask for a clean exit, SIGHUP for certificates, token files and the audit policy to be read again.

use std::io;
use std::os::fd::AsFd;

use portico_gostd::os::error_text;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the process listens to from now on.
pub(super) struct Signals {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// `--exit-with-stdin`
    input: Option<File>,
}

impl Signals {
    pub(super) fn listen(exit_with_stdin: bool) -> io::Result<Self> {
        let input = || io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from).map(File::from_std);
        Ok(Self {
            input: exit_with_stdin.then(input).transpose()?,
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next thing that is asked for. Cancel safe.
    pub(super) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.hangup.recv() => Asked::Reload,
            _ = self.term.recv() => Asked::Stop(Stop::Terminate),
            _ = self.interrupt.recv() => Asked::Stop(Stop::Interrupt),
            () = end_of(&mut self.input) => Asked::Stop(Stop::Terminate),
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

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A clean exit.
    Stop(Stop),
    /// Files are to be read again.
    Reload,
}

/// By which signal a stop is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

impl Stop {
    /// The signal.
    pub(super) fn signal(self) -> rustix::process::Signal {
        match self {
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Interrupt => rustix::process::Signal::INT,
        }
    }
}
