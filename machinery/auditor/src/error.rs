//! Errors that prevent the start of audit.

use portico_kit::certs::FileError;

/// Error that prevents the start of audit.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// `--audit-policy-file`
    #[error("--audit-policy-file: {0}")]
    Policy(#[from] FileError),
    /// `--audit-log-path`
    #[error("--audit-log-path: ensureLogFile: open {path}: {}", portico_gostd::os::error_text(source))]
    Log { path: String, source: std::io::Error },
    /// `--audit-webhook-config-file`
    #[error("--audit-webhook-config-file: initializing audit webhook: {0}")]
    Webhook(String),
}
