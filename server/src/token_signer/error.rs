//! Errors of an external signer, with the gRPC codes for metrics.

use crate::unix_socket::code_name;
use tonic::{Code, Status};

/// Error of an external signer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct SignerError {
    text: String,
    /// Code as Go prints it; `None` for an error that gRPC did not report.
    pub(super) code: Option<&'static str>,
}

impl SignerError {
    /// Creates an error about an invalid response.
    pub(super) fn invalid_response(text: String) -> Self {
        Self { text, code: None }
    }

    /// Converts an error of gRPC.
    pub(super) fn from_status(status: &Status) -> Self {
        Self::rpc(status.code(), status.message())
    }

    pub(super) fn rpc(code: Code, message: &str) -> Self {
        let code = code_name(code);
        Self { text: format!("rpc error: code = {code} desc = {message}"), code: Some(code) }
    }

    /// Prepends the failed operation to the message.
    pub(super) fn context(self, operation: &str) -> Self {
        Self { text: format!("{operation}: {}", self.text), ..self }
    }
}
