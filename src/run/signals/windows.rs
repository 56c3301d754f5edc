//! Signals on Windows: Ctrl-C acts as SIGINT, Ctrl-Break as SIGHUP; closing the console and shutting down the system
//! act as SIGTERM.

use std::io;
use std::os::windows::io::AsHandle;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

use crate::run::request::{Request, Stop};

/// Registered event handlers.
pub(super) struct SignalHandlers {
    interrupt: CtrlC,
    r#break: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl SignalHandlers {
    pub(super) fn listen() -> io::Result<Self> {
        let (close, shutdown) = (ctrl_close()?, ctrl_shutdown()?);
        Ok(Self { interrupt: ctrl_c()?, r#break: ctrl_break()?, close, shutdown })
    }

    /// Waits for the next event and returns its request. Cancel safe.
    pub(super) async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop(Stop::Interrupt),
            _ = self.r#break.recv() => Request::Reload,
            _ = self.close.recv() => Request::Stop(Stop::Terminate),
            _ = self.shutdown.recv() => Request::Stop(Stop::Terminate),
        }
    }
}

/// Returns standard input as a separate file.
pub(super) fn input() -> io::Result<std::fs::File> {
    io::stdin().as_handle().try_clone_to_owned().map(Into::into)
}

/// Does nothing, because a console sends its events to all of its processes.
pub(crate) fn send(_: u32, _: Stop) -> io::Result<()> {
    Ok(())
}
