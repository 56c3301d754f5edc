//! SIGTERM and SIGINT ask for a clean exit, SIGHUP for certificates, token files and the audit policy to be read again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the process listens to from now on.
pub(super) struct Signals {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
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
