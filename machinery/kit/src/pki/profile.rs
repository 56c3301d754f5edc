//! Requested contents of a certificate, and a certificate with its key.

use std::net::IpAddr;
use std::time::Duration;

use super::PkiError;
use super::info::CertInfo;
use crate::tls::CertPair;

/// Purpose of a certificate (extended key usage).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertUsage {
    /// Server authentication (serverAuth).
    Server,
    /// Client authentication (clientAuth).
    Client,
    /// Server and client authentication.
    Both,
}

/// Requested contents of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertProfile {
    /// Common name of the subject: the user name of a client.
    pub common_name: String,
    /// Organizations of the subject: the groups of a client. At most two.
    pub organizations: Vec<String>,
    /// DNS names of a server.
    pub dns_names: Vec<String>,
    /// IP addresses of a server.
    pub ip_addresses: Vec<IpAddr>,
    /// Purpose of the certificate.
    pub usage: CertUsage,
    /// Duration of the validity, from the time of issue.
    pub validity: Duration,
}

impl CertProfile {
    /// Returns the profile of a client with groups.
    pub fn client(common_name: &str, organizations: &[&str], validity: Duration) -> Self {
        Self {
            common_name: common_name.to_owned(),
            organizations: organizations.iter().map(ToString::to_string).collect(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            usage: CertUsage::Client,
            validity,
        }
    }

    /// Returns the profile of a server with names and addresses (`localhost`, `127.0.0.1`).
    pub fn server(common_name: &str, names: &[String], validity: Duration) -> Self {
        let (mut dns_names, mut ip_addresses) = (Vec::new(), Vec::new());
        for name in names {
            match name.parse::<IpAddr>() {
                Ok(address) => ip_addresses.push(address),
                Err(_) => dns_names.push(name.clone()),
            }
        }
        let (common_name, usage) = (common_name.to_owned(), CertUsage::Server);
        Self { common_name, organizations: Vec::new(), dns_names, ip_addresses, usage, validity }
    }

    pub(super) fn matches_cert(&self, info: &CertInfo) -> bool {
        self.common_name == info.common_name
            && self.organizations == info.organizations
            && self.dns_names == info.dns_names
            && self.ip_addresses == info.ip_addresses
    }
}

/// Certificate and key in PEM.
#[derive(Clone)]
pub struct PemPair {
    /// Certificate, followed by intermediates.
    pub cert_pem: String,
    /// Private key. Keys that are handed out are in SEC1 format (`EC PRIVATE KEY`), because some clients do not support PKCS#8.
    pub key_pem: String,
}

impl std::fmt::Debug for PemPair {
    /// Omits the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemPair").field("cert_pem", &self.cert_pem).finish_non_exhaustive()
    }
}

impl PemPair {
    /// Parses the pair for rustls; `label` names it in errors.
    pub fn cert_pair(&self, label: &str) -> Result<CertPair, PkiError> {
        Ok(CertPair::from_pem(label, self.cert_pem.as_bytes(), self.key_pem.as_bytes())?)
    }
}
