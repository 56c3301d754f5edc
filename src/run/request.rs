//! Requests that signals make to a running process.

/// Request to a running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Stop cleanly.
    Stop(Stop),
    /// Read files again.
    Reload,
}

/// Signal that requests a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// SIGTERM, which stops the process cleanly.
    Terminate,
    /// SIGINT, usually Ctrl-C in a terminal.
    Interrupt,
}

impl Stop {
    /// Returns the name of the signal.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }

    /// Returns the number of the signal, which is the same on every Unix.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Terminate => 15,
            Self::Interrupt => 2,
        }
    }
}
