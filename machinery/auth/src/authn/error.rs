//! Errors of credentials.

use std::sync::Arc;

use crate::headers::NotUtf8;

/// Reason why a credential was rejected. Used in logs and audit; callers only see `Unauthorized`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthnError {
    /// The presented chain does not lead to the authority, or is not valid at this time.
    #[error("x509: {0}")]
    Chain(Arc<str>),
    /// The leaf cannot be parsed, or its uid is malformed.
    #[error("x509: {0}")]
    Certificate(String),
    /// The certificate of a front proxy is valid, but its name is not in `--requestheader-allowed-names`.
    #[error("x509: subject with cn={0} is not in the allowed list")]
    NameNotAllowed(String),
    /// No authenticator accepts the token.
    #[error("invalid bearer token")]
    InvalidToken,
    /// The token has a known issuer and was rejected.
    #[error("{0}")]
    Token(Arc<str>),
    /// The token in the subprotocol is malformed.
    #[error("websocket bearer token: {0}")]
    WebSocket(&'static str),
    /// A front proxy names the user in a header that is not UTF-8. Other credentials of the request are ignored.
    #[error(transparent)]
    Header(#[from] NotUtf8),
}
