//! Errors of a server.

use std::ffi::OsString;

use portico_gostd::os::error_text;
use portico_kit::tasks::TaskFailure;
use portico_kit::telemetry::TelemetryError;

use crate::exit_codes;
use crate::settings::SettingError;

/// Error of a server. The message is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("--v: {0}")]
    Telemetry(#[from] TelemetryError),
    #[error("--tracing-config-file: {0}")]
    Spans(#[from] portico_kit::spans::SpanExportError),
    #[error("cannot start: {}", error_text(.0))]
    Runtime(#[source] std::io::Error),
    #[error(transparent)]
    Audit(#[from] portico_auditor::AuditError),
    #[error("a socket of the parent process cannot be used: {}", error_text(.0))]
    PassedSocket(#[source] std::io::Error),
    #[error("the parent process passed an unexpected socket '{0}': pass one named https and one named grpc")]
    UnexpectedSocket(String),
    #[error(transparent)]
    Server(#[from] portico_server::StartError),
    #[error(transparent)]
    Facade(#[from] portico_facade::StartError),
    #[error("--addresses-file: {}", error_text(.0))]
    Addresses(#[source] std::io::Error),
    #[error("--ephemeral: cannot create a temporary folder: {}", error_text(.0))]
    Scratch(#[source] std::io::Error),
    /// The program of `portico run -- CMD` cannot be started.
    #[error("{}: {}", program.to_string_lossy(), error_text(error))]
    Command { program: OsString, error: std::io::Error },
    #[error("{0}")]
    Manifests(String),
    /// The folder of manifests cannot be applied while a program waits for the server.
    #[error("--manifests: {0}; the command was not run")]
    Unapplied(String),
    /// An essential part of the server ended.
    #[error("{} ended: {}", .0.task, .0.reason)]
    TaskEnded(TaskFailure),
}

impl Failure {
    /// Returns the hint to print below the message, if the error has one.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Setting(error) => error.hint(),
            Self::Server(error) if error.is_locked() => {
                Some("stop that process, or choose another folder with --data-dir")
            }
            Self::Server(error) if error.is_address_in_use() => Some(
                "stop the process that listens there, or choose another address with --control-address (port 0: any free port)",
            ),
            Self::Facade(error) if error.is_address_in_use() => Some(
                "stop the process that listens there, or choose another port with --secure-port (0: any free port)",
            ),
            _ => None,
        }
    }

    /// Returns the exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Setting(_) | Self::Telemetry(_) | Self::Audit(_) => exit_codes::USAGE,
            Self::Server(error) if error.is_setting() => exit_codes::USAGE,
            Self::Facade(error) if error.is_settings_error() => exit_codes::USAGE,
            Self::Server(error) if error.is_replaced() => exit_codes::DATABASE_REPLACED,
            Self::Command { error, .. } => start_error_code(error),
            _ => exit_codes::FAILED,
        }
    }
}

/// Returns the exit code for a program that cannot be started, as shells do.
fn start_error_code(error: &std::io::Error) -> u8 {
    match error.kind() {
        std::io::ErrorKind::NotFound => exit_codes::NOT_FOUND,
        _ => exit_codes::NOT_EXECUTABLE,
    }
}
