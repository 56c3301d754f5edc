//! Why a control service does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use portico_gostd::os::error_text;

/// Why the control service does not start; one line for people.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder cannot be made or used.
    #[error("--data-dir {}: {}", path.display(), error_text(source))]
    DataDir {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Certificates cannot be made, read or used.
    #[error("certificates: {0}")]
    Pki(#[from] portico_kit::pki::PkiError),
    /// A certificate cannot be served.
    #[error("certificates: {0}")]
    Tls(#[from] portico_kit::tls::TlsError),
    /// A file of a setting cannot be read or used.
    #[error("{0}")]
    File(#[from] portico_kit::certs::FileError),
    /// A CA cannot be used.
    #[error("certificates: {0}")]
    Authority(#[from] portico_auth::authn::AuthorityError),
    /// A key of service accounts' tokens cannot be used.
    #[error("{}: {source}", path.display())]
    TokenKey {
        /// The file.
        path: PathBuf,
        /// Why.
        source: portico_auth::jwt::KeyError,
    },
    /// Somebody else who signs tokens.
    #[error("while setting up external-jwt-signer: {0}")]
    TokenSigner(String),
    /// Lives of tokens that do not go together.
    #[error("{0}")]
    TokenLife(String),
    /// The system gives no threads.
    #[error("cannot start threads: {}", error_text(.0))]
    Threads(#[source] std::io::Error),
    /// The store does not open.
    #[error("cannot open the store: {0}")]
    Store(#[from] portico_store::OpenError),
    /// The PostgreSQL database cannot be opened.
    #[error("cannot open the store: {0}")]
    Postgres(#[from] portico_store::PostgresError),
    /// The store in etcd cannot be opened.
    #[error("cannot open the store: {0}")]
    Etcd(#[from] portico_store::EtcdError),
    /// Keys that are shared through the store cannot be read or written there.
    #[error("cannot share the files of {name} between control services: {reason}")]
    SharedFiles {
        /// Which.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// Another control service of the database has another one.
    #[error(
        "{}: the control services of the database use a different file; remove this file to use theirs (its signatures \
         are no longer trusted)",
        path.display()
    )]
    SharedFile {
        /// The file.
        path: PathBuf,
    },
    /// The encryption configuration's file.
    #[error("--encryption-provider-config: {0}")]
    Encryption(#[from] crate::encryption::EncryptionError),
    /// The egress selector's file.
    #[error("--egress-selector-config-file: {0}")]
    Egress(#[from] portico_kit::egress::EgressError),
    /// The kubeconfig of webhooks.
    #[error("{}: {reason}", file.display())]
    WebhookUsers {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// Who knows bearer tokens.
    #[error("authentication: {0}")]
    Authentication(String),
    /// Who decides what callers may do.
    #[error("authorization: {0}")]
    Authorization(String),
    /// The address is taken, or not ours.
    #[error("--control-address {address}: {}", error_text(source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The embedded descriptions of kinds do not load: a broken build.
    #[error("kinds: {0}")]
    Kinds(#[from] portico_kinds::LoadError),
    /// Stored definitions of custom resources that cannot be read.
    #[error("definitions of custom resources: {0}")]
    Definitions(String),
    /// Reflection needs our own descriptors; broken ones are a broken build.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// Two hooks of one name: a broken build.
    #[error("hooks: {0}")]
    Hook(#[from] portico_kit::hooks::HookError),
    /// Two checks of one name: a broken build.
    #[error("health: {0}")]
    Health(#[from] portico_kit::health::HealthError),
}

impl StartError {
    /// Whether the database is not the one that was served last: starting again changes nothing.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        matches!(self, Self::Store(portico_store::OpenError::Replaced { .. }))
    }

    /// Returns true if another process uses the database.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::Store(portico_store::OpenError::InUse { .. }))
    }

    /// Returns true if another process listens on the address.
    #[must_use]
    pub fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse)
    }

    /// Whether a setting is wrong, rather than the machine or the data.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        matches!(
            self,
            Self::File(_)
                | Self::Authority(_)
                | Self::Egress(_)
                | Self::Encryption(_)
                | Self::TokenKey { .. }
                | Self::TokenLife(_)
                | Self::Authentication(_)
                | Self::Authorization(_)
        )
    }
}
