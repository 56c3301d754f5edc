//! TLS with one explicit crypto provider (aws-lc-rs): server side, client side, and what went wrong.
//!
//! It must not know HTTP, nor whether a client's certificate means anything: the server side proves
//! possession only, chains are checked per request by authentication.

mod anchor;
mod client;
mod fault;
mod issued;
mod pair;
mod server;

pub(crate) use client::server_name;
pub use client::{Alpn, ClientTls, ClientTlsBuilder, Roots};
pub use fault::{CertFault, FaultKind};
pub use pair::CertPair;
pub use server::{ServerTls, ServerTlsOptions, SniCert};

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

/// Why TLS settings were refused. Each message names the certificate, key or CA that is meant.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// PEM that cannot be read.
    #[error("{what}: not valid PEM: {reason}")]
    Pem {
        /// Which input (a file name, `caBundle`, ...).
        what: String,
        /// The parser's error.
        reason: String,
    },
    /// PEM without what was looked for.
    #[error("{what}: contains no {missing}")]
    Empty {
        /// Which input.
        what: String,
        /// `certificate` or `private key`.
        missing: &'static str,
    },
    /// A certificate that cannot be parsed or used.
    #[error("{what}: {reason}")]
    Certificate {
        /// Which input, and which certificate in it.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// Certificate and key belong to different pairs.
    #[error("{what}: the private key does not match the certificate")]
    Mismatch {
        /// Which pair.
        what: String,
    },
    /// A cipher suite, version or name that we do not have.
    #[error("{0}")]
    Unsupported(String),
    /// The system's trusted roots could not be loaded.
    #[error("system roots: {0}")]
    SystemRoots(String),
}

/// The lowest TLS version that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3 only.
    Tls13,
}

impl MinVersion {
    /// From upstream's flag value (`VersionTLS12`, `VersionTLS13`; older ones are refused).
    pub fn from_flag(value: &str) -> Result<Self, TlsError> {
        match value {
            "" | "VersionTLS12" => Ok(Self::Tls12),
            "VersionTLS13" => Ok(Self::Tls13),
            other => Err(TlsError::Unsupported(format!("unknown or unsupported TLS version {other:?}"))),
        }
    }

    pub(crate) fn versions(self) -> &'static [&'static rustls::SupportedProtocolVersion] {
        static BOTH: [&rustls::SupportedProtocolVersion; 2] =
            [&rustls::version::TLS13, &rustls::version::TLS12];
        match self {
            Self::Tls12 => &BOTH,
            Self::Tls13 => &BOTH[..1],
        }
    }
}

/// The process's crypto provider. It is passed explicitly everywhere: no default is installed.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    PROVIDER.clone()
}

/// The provider with only the named suites (upstream's names, `TLS_ECDHE_RSA_WITH_...`; TLS 1.3 suites
/// are always on, as in Go) and key exchanges (by IANA's numbers). An empty list means all.
///
/// # Errors
/// [`TlsError::Unsupported`] names what is not spoken.
pub fn provider_with(suites: &[String], key_exchanges: &[u16]) -> Result<Arc<CryptoProvider>, TlsError> {
    if suites.is_empty() && key_exchanges.is_empty() {
        return Ok(provider());
    }
    let mut own = provider().as_ref().clone();
    let name_of =
        |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
    for name in suites {
        if !own.cipher_suites.iter().any(|suite| name_of(suite) == *name) {
            return Err(TlsError::Unsupported(format!("cipher suite {name:?} is not supported")));
        }
    }
    for id in key_exchanges {
        if !own.kx_groups.iter().any(|group| u16::from(group.name()) == *id) {
            return Err(TlsError::Unsupported(format!("key exchange {id} is not supported")));
        }
    }
    own.cipher_suites
        .retain(|suite| suites.is_empty() || suite.tls13().is_some() || suites.contains(&name_of(suite)));
    own.kx_groups
        .retain(|group| key_exchanges.is_empty() || key_exchanges.contains(&u16::from(group.name())));
    Ok(Arc::new(own))
}

#[cfg(test)]
mod tests;
