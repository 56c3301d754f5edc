//! Signals on Unix: SIGTERM, SIGINT and SIGHUP.

use std::io;
use std::os::fd::AsFd;

use rustix::process::{Pid, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::run::request::{Request, Stop};

/// Registered signal handlers.
pub(super) struct SignalHandlers {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl SignalHandlers {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal and returns its request. Cancel safe.
    pub(super) async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.hangup.recv() => Request::Reload,
            _ = self.term.recv() => Request::Stop(Stop::Terminate),
            _ = self.interrupt.recv() => Request::Stop(Stop::Interrupt),
        }
    }
}

/// Returns standard input as a separate file.
pub(super) fn input() -> io::Result<std::fs::File> {
    io::stdin().as_fd().try_clone_to_owned().map(Into::into)
}

/// Forwards a signal to a process. SIGINT is not forwarded in the foreground of a terminal, which sends SIGINT to all of its
/// foreground processes itself: many programs abort on a second SIGINT.
pub(crate) fn send(process: u32, stop: Stop) -> io::Result<()> {
    if stop == Stop::Interrupt && is_in_foreground() {
        return Ok(());
    }
    let signal = match stop {
        Stop::Terminate => rustix::process::Signal::TERM,
        Stop::Interrupt => rustix::process::Signal::INT,
    };
    let Some(process) = Pid::from_raw(process.cast_signed()) else { return Ok(()) };
    kill_process(process, signal).map_err(io::Error::from)
}

/// Returns true if this process is in the foreground of its terminal.
fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp())
}
