//! Why a credential does not count.

use std::sync::Arc;

use crate::headers::NotUtf8;

/// Why a credential did not count. For logs and audit; callers get `Unauthorized` and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthnError {
    /// The presented chain does not lead to the authority, or is out of date.
    #[error("x509: {0}")]
    Chain(Arc<str>),
    /// The leaf cannot be read or says its uid badly.
    #[error("x509: {0}")]
    Certificate(String),
    /// A good front-proxy certificate of somebody who is not named in `--requestheader-allowed-names`.
    #[error("x509: subject with cn={0} is not in the allowed list")]
    NameNotAllowed(String),
    /// No token authenticator knows the token.
    #[error("invalid bearer token")]
    InvalidToken,
    /// The token is of a known issuer and does not count.
    #[error("{0}")]
    Token(Arc<str>),
    /// The subprotocol token is malformed.
    #[error("websocket bearer token: {0}")]
    WebSocket(&'static str),
    /// A front proxy names the user in a header that cannot be read. Other credentials of the request do not count.
    #[error(transparent)]
    Header(#[from] NotUtf8),
}
