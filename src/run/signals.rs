//! SIGTERM and SIGINT ask for a clean exit, SIGHUP for certificates, token files and the audit policy to be read again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the process listens to from now on.
pub(super) struct Signals {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
    stopping: bool,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            stopping: false,
        })
    }

    /// The next thing that is asked for. Cancel safe. A stop stays asked for.
    pub(super) async fn next(&mut self) -> Asked {
        if self.stopping {
            return Asked::Stop;
        }
        tokio::select! {
            _ = self.hangup.recv() => return Asked::Reload,
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        self.stopping = true;
        Asked::Stop
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A clean exit.
    Stop,
    /// Files are to be read again.
    Reload,
}
