//! Requests to a running process by signals.

/// Request of a signal.
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
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

impl Stop {
    /// The signal's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }

    /// The signal's number, the same on every Unix.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Terminate => 15,
            Self::Interrupt => 2,
        }
    }
}
