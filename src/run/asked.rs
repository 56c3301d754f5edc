//! What a running process is asked to do.

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
    /// The signal's number, the same on every Unix.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Terminate => 15,
            Self::Interrupt => 2,
        }
    }
}
