//! Settings of front proxies (`--requestheader-*`), used by both halves and published to backends.

use std::path::PathBuf;

/// Proxies that may name the user in headers, and the headers that they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// `--requestheader-client-ca-file`: CAs of the proxies' certificates.
    pub client_ca_file: PathBuf,
    /// `--requestheader-allowed-names`: common names that the certificates may have; empty allows any.
    pub allowed_names: Vec<String>,
    /// `--requestheader-username-headers`
    pub username_headers: Vec<String>,
    /// `--requestheader-uid-headers`; empty if no UID is trusted.
    pub uid_headers: Vec<String>,
    /// `--requestheader-group-headers`
    pub group_headers: Vec<String>,
    /// `--requestheader-extra-headers-prefix`
    pub extra_headers_prefix: Vec<String>,
}
