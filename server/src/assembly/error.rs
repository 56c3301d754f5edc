//! Errors that prevent the start of a control service.

use std::net::SocketAddr;
use std::path::PathBuf;

use portico_gostd::os::error_text;

/// Error that prevents the start of the control service. The message is one line for users.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder cannot be created or used.
    #[error("--data-dir {}: {}", path.display(), error_text(source))]
    DataDir {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Certificates cannot be created, read or used.
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
    /// A key for service account tokens cannot be used.
    #[error("{}: {source}", path.display())]
    TokenKey {
        /// Path of the file.
        path: PathBuf,
        /// Error in the key.
        source: portico_auth::jwt::KeyError,
    },
    /// The external signer of tokens cannot be used.
    #[error("while setting up external-jwt-signer: {0}")]
    TokenSigner(String),
    /// Conflicting lifetimes of tokens.
    #[error("{0}")]
    TokenLife(String),
    /// The operating system refused to create threads.
    #[error("cannot start threads: {}", error_text(.0))]
    Threads(#[source] std::io::Error),
    /// The store cannot be opened.
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
        /// Name of the set of files.
        name: &'static str,
        /// Error of the store.
        reason: String,
    },
    /// The file differs from that of other control services of the database.
    #[error(
        "{}: the control services of the database use a different file; remove this file to use theirs (its signatures \
         are no longer trusted)",
        path.display()
    )]
    SharedFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// The encryption configuration cannot be used.
    #[error("--encryption-provider-config: {0}")]
    Encryption(#[from] crate::encryption::EncryptionError),
    /// The egress selector configuration cannot be used.
    #[error("--egress-selector-config-file: {0}")]
    Egress(#[from] portico_kit::egress::EgressError),
    /// The kubeconfig of webhooks cannot be used.
    #[error("{}: {reason}", file.display())]
    WebhookUsers {
        /// Path of the file.
        file: PathBuf,
        /// Error in the file.
        reason: String,
    },
    /// The configuration of authentication is invalid.
    #[error("authentication: {0}")]
    Authentication(String),
    /// The configuration of authorization is invalid.
    #[error("authorization: {0}")]
    Authorization(String),
    /// The address is in use, or does not belong to this host.
    #[error("--control-address {address}: {}", error_text(source))]
    Bind {
        /// Address to bind.
        address: SocketAddr,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The embedded descriptions of kinds cannot be loaded: the build is broken.
    #[error("kinds: {0}")]
    Kinds(#[from] portico_kinds::LoadError),
    /// Stored definitions of custom resources cannot be read.
    #[error("definitions of custom resources: {0}")]
    Definitions(String),
    /// The embedded descriptors for reflection are invalid: the build is broken.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// Two hooks have the same name: the build is broken.
    #[error("hooks: {0}")]
    Hook(#[from] portico_kit::hooks::HookError),
    /// Two checks have the same name: the build is broken.
    #[error("health: {0}")]
    Health(#[from] portico_kit::health::HealthError),
}

impl StartError {
    /// True if the database was replaced since it was last served; a restart does not help.
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

    /// True if a setting is invalid, as opposed to a problem of the machine or the data.
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
