//! Reads the audit policy file.

use std::path::Path;

use portico_audit::Policy;
use portico_kit::certs::{FileError, FileWatch};

/// Reads and parses the policy, and prepares it for reloads.
pub(super) fn read(path: &Path) -> Result<FileWatch<Policy>, FileError> {
    let parse = |files: &[Vec<u8>]| {
        let text = String::from_utf8_lossy(files.first().map_or(&[], Vec::as_slice));
        Policy::parse(&text).map_err(|error| format!("loading audit policy file: {error}"))
    };
    FileWatch::new(vec![path.to_owned()], parse)
}

/// Logs the fields of a policy that were ignored.
pub(super) fn log_warnings(policy: &Policy) {
    if !policy.warnings().is_empty() {
        let errors = policy.warnings().join(", ");
        tracing::warn!(errors, "audit policy contains errors, falling back to lenient decoding");
    }
}
