//! TLS with one explicit crypto provider (aws-lc-rs): server side, client side, and error messages.
//!
//! Does not depend on HTTP. The server side only verifies that a client possesses the key of its certificate; authentication
//! verifies the chain per request.

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

/// Error in TLS settings. Each message names the certificate, key or CA.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The input is not valid PEM.
    #[error("{label}: not valid PEM: {reason}")]
    Pem {
        /// Name of the input (a file name, `caBundle`, ...).
        label: String,
        /// Error of the parser.
        reason: String,
    },
    /// The PEM does not contain the expected section.
    #[error("{label}: contains no {missing}")]
    Empty {
        /// Name of the input.
        label: String,
        /// `certificate` or `private key`.
        missing: &'static str,
    },
    /// A certificate cannot be parsed or used.
    #[error("{label}: {reason}")]
    Certificate {
        /// Name of the input, and position of the certificate in it.
        label: String,
        /// Reason of the rejection.
        reason: String,
    },
    /// Certificate and key do not belong together.
    #[error("{label}: the private key does not match the certificate")]
    Mismatch {
        /// Name of the pair.
        label: String,
    },
    /// A cipher suite, version or name is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// The trusted roots of the system could not be loaded.
    #[error("system roots: {0}")]
    SystemRoots(String),
}

/// Minimum TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3 only.
    Tls13,
}

impl MinVersion {
    /// Parses the value of upstream's flag (`VersionTLS12`, `VersionTLS13`; older versions are rejected).
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

/// Returns the crypto provider of the process. It is always passed explicitly; no default provider is installed.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    PROVIDER.clone()
}

/// Returns the provider with only the named suites (upstream's names, `TLS_ECDHE_RSA_WITH_...`; TLS 1.3 suites
/// are always enabled, as in Go) and key exchanges (by IANA's numbers). An empty list means all.
///
/// # Errors
/// [`TlsError::Unsupported`] names an unsupported suite or key exchange.
pub fn provider_with(suites: &[String], key_exchanges: &[u16]) -> Result<Arc<CryptoProvider>, TlsError> {
    if suites.is_empty() && key_exchanges.is_empty() {
        return Ok(provider());
    }
    let mut custom_provider = provider().as_ref().clone();
    let name_of =
        |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
    for name in suites {
        if !custom_provider.cipher_suites.iter().any(|suite| name_of(suite) == *name) {
            return Err(TlsError::Unsupported(format!("cipher suite {name:?} is not supported")));
        }
    }
    for id in key_exchanges {
        if !custom_provider.kx_groups.iter().any(|group| u16::from(group.name()) == *id) {
            return Err(TlsError::Unsupported(format!("key exchange {id} is not supported")));
        }
    }
    custom_provider
        .cipher_suites
        .retain(|suite| suites.is_empty() || suite.tls13().is_some() || suites.contains(&name_of(suite)));
    custom_provider
        .kx_groups
        .retain(|group| key_exchanges.is_empty() || key_exchanges.contains(&u16::from(group.name())));
    Ok(Arc::new(custom_provider))
}

#[cfg(test)]
mod tests;
