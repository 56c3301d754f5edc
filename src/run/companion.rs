//! Program of `portico run -- CMD`. It starts once the API is served, receives the stop signals of this process, and determines the
//! exit code.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;

use portico_gostd::os::error_text;
use tokio::process::{Child, Command};

use super::failure::Failure;
use super::request::Stop;
use super::signals;
use crate::exit_codes::SIGNAL_BASE;

/// Location of the server, which the program gets in environment variables.
pub(super) struct ServerLocation<'a> {
    /// `KUBECONFIG`: kubeconfig of the administrator, whose current context is the facade.
    pub(super) kubeconfig: &'a Path,
    /// `PORTICO_URL`: URL of the facade.
    pub(super) url: &'a str,
    /// `PORTICO_GRPC`: `host:port` of the control service.
    pub(super) grpc: &'a str,
    /// `PORTICO_CERTS`: folder of `internal-ca.crt`, `admin.crt` and `admin.key`.
    pub(super) certs: &'a Path,
}

/// Running program of `portico run -- CMD`.
pub(super) struct Companion {
    child: Child,
}

impl Companion {
    /// Starts the program, if `command` names a program. Dropping the result kills the program.
    ///
    /// # Errors
    /// Returns [`Failure::Command`] if the program cannot be started.
    pub(super) fn start(
        command: &[OsString],
        location: &ServerLocation<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let started = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", location.kubeconfig)
            .env("PORTICO_URL", location.url)
            .env("PORTICO_GRPC", location.grpc)
            .env("PORTICO_CERTS", location.certs)
            .kill_on_drop(true)
            .spawn();
        match started {
            Ok(child) => Ok(Some(Self { child })),
            Err(error) => Err(Failure::Command { program: program.clone(), error }),
        }
    }

    /// Forwards a stop signal to the program.
    pub(super) fn signal(&self, stop: Stop) {
        let Some(process) = self.child.id() else { return };
        if let Err(error) = signals::send(process, stop) {
            tracing::warn!(error = error_text(&error), "cannot send a signal to the program");
        }
    }

    /// Waits for the end of the program and returns its exit code. Cancel safe.
    ///
    /// # Errors
    /// Returns [`Failure::Runtime`] if waiting fails.
    pub(super) async fn wait(&mut self) -> Result<u8, Failure> {
        self.child.wait().await.map(exit_code).map_err(Failure::Runtime)
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| exit_signal(status).map(|signal| i32::from(SIGNAL_BASE) + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(unix)]
fn exit_signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn exit_signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Returns the exit code of a program that the signal `stop` ended.
pub(super) fn signal_exit_code(stop: Stop) -> u8 {
    SIGNAL_BASE + stop.number()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn exit_codes_of_programs_are_those_of_a_shell() {
        for (raw, code) in [(0, 0), (3 << 8, 3), (15, 143), (9, 137)] {
            assert_eq!(exit_code(ExitStatus::from_raw(raw)), code);
        }
        for (kind, code) in [(io::ErrorKind::NotFound, 127), (io::ErrorKind::PermissionDenied, 126)] {
            let failure = Failure::Command { program: "a".into(), error: kind.into() };
            assert_eq!(failure.exit_code(), code);
        }
    }
}
