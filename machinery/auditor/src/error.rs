//! Why audit cannot begin.

use portico_kit::certs::FileError;

/// Why audit cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// `--audit-policy-file`
    #[error("--audit-policy-file: {0}")]
    Policy(#[from] FileError),
    /// `--audit-log-path`
    #[error("--audit-log-path: ensureLogFile: open {path}: {}", portico_gostd::os::error_text(source))]
    Log {
        /// The path.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// `--audit-webhook-config-file`
    #[error("--audit-webhook-config-file: initializing audit webhook: {0}")]
    Webhook(String),
}
