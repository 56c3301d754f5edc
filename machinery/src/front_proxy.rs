//! Front proxies as settings name them (`--requestheader-*`): both halves and what is published to backends are made of these.

use std::path::PathBuf;

/// Who may say, in headers, who is calling, and in which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// `--requestheader-client-ca-file`: the CAs of their certificates.
    pub client_ca_file: PathBuf,
    /// `--requestheader-allowed-names`: common names that their certificates may have; empty is any.
    pub allowed_names: Vec<String>,
    /// `--requestheader-username-headers`
    pub username_headers: Vec<String>,
    /// `--requestheader-uid-headers`; empty: no uid is trusted.
    pub uid_headers: Vec<String>,
    /// `--requestheader-group-headers`
    pub group_headers: Vec<String>,
    /// `--requestheader-extra-headers-prefix`
    pub extra_headers_prefix: Vec<String>,
}
