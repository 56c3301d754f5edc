//! Why a signer gave nothing that can be used, and the gRPC code that it is counted by.

use crate::unix_socket::code_name;
use tonic::{Code, Status};

/// See the module.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct SignerError {
    text: String,
    /// The code as Go prints it, where gRPC reports one.
    pub(super) code: Option<&'static str>,
}

impl SignerError {
    /// Found here, in what was answered.
    pub(super) fn own(text: String) -> Self {
        Self { text, code: None }
    }

    /// An error of gRPC.
    pub(super) fn of(status: &Status) -> Self {
        Self::rpc(status.code(), status.message())
    }

    pub(super) fn rpc(code: Code, message: &str) -> Self {
        let code = code_name(code);
        Self { text: format!("rpc error: code = {code} desc = {message}"), code: Some(code) }
    }

    /// The same, with what was done.
    pub(super) fn context(self, doing: &str) -> Self {
        Self { text: format!("{doing}: {}", self.text), ..self }
    }
}
