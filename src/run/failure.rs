//! Why the process ends badly.

use std::ffi::OsString;

use portico_gostd::os::error_text;
use portico_kit::tasks::TaskFailure;
use portico_kit::telemetry::TelemetryError;

use crate::exit_codes;
use crate::settings::SettingError;

/// Why the process ended badly; one line for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Logging.
    #[error("--v: {0}")]
    Telemetry(#[from] TelemetryError),
    /// Traces.
    #[error("--tracing-config-file: {0}")]
    Spans(#[from] portico_kit::spans::SpanExportError),
    /// The runtime could not be made.
    #[error("cannot start: {}", error_text(.0))]
    Runtime(#[source] std::io::Error),
    /// Audit.
    #[error(transparent)]
    Audit(#[from] portico_auditor::AuditError),
    /// A socket that whoever started the process made.
    #[error("a socket that was passed on cannot be used: {}", error_text(.0))]
    PassedSocket(#[source] std::io::Error),
    /// A socket that nobody here serves.
    #[error(
        "a socket named {0} was passed on, and nobody here serves it: names are https and grpc, each once"
    )]
    StrangeSocket(String),
    /// The control service.
    #[error(transparent)]
    Server(#[from] portico_server::StartError),
    /// The facade.
    #[error(transparent)]
    Facade(#[from] portico_facade::StartError),
    /// The file with the server's addresses.
    #[error("--addresses-file: {}", error_text(.0))]
    Addresses(#[source] std::io::Error),
    /// The folder of a process that keeps nothing.
    #[error("--ephemeral: cannot make a temporary folder: {}", error_text(.0))]
    Scratch(#[source] std::io::Error),
    /// The program that is to run beside the server.
    #[error("{}: {}", program.to_string_lossy(), error_text(error))]
    Command {
        /// Which.
        program: OsString,
        /// Why it cannot be started.
        error: std::io::Error,
    },
    /// A folder of manifests.
    #[error("{0}")]
    Manifests(String),
    /// A folder of manifests that cannot be applied, where a program waits for it.
    #[error("--manifests: {0}; the command was not run")]
    Unapplied(String),
    /// A part that the process cannot live without ended.
    #[error("{} ended: {}", .0.task, .0.reason)]
    Part(TaskFailure),
}

impl Failure {
    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Setting(_) | Self::Telemetry(_) | Self::Audit(_) => exit_codes::USAGE,
            Self::Server(error) if error.is_setting() => exit_codes::USAGE,
            Self::Facade(error) if error.is_setting() => exit_codes::USAGE,
            Self::Server(error) if error.is_replaced() => exit_codes::DATABASE_REPLACED,
            Self::Command { error, .. } => not_started(error),
            _ => exit_codes::FAILED,
        }
    }
}

/// The exit code of a program that cannot be started, as in shells.
fn not_started(error: &std::io::Error) -> u8 {
    match error.kind() {
        std::io::ErrorKind::NotFound => exit_codes::NOT_FOUND,
        _ => exit_codes::NOT_EXECUTABLE,
    }
}
