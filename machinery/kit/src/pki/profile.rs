//! What a certificate is asked to say, and a certificate with its key.

use std::net::IpAddr;
use std::time::Duration;

use super::PkiError;
use super::info::CertInfo;
use crate::tls::CertPair;

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// serverAuth.
    Server,
    /// clientAuth.
    Client,
    /// Both.
    Both,
}

/// What is asked of an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Subject's common name: the user name of a client.
    pub common_name: String,
    /// Subject's organizations: the groups of a client. At most two.
    pub organizations: Vec<String>,
    /// DNS names of a server.
    pub dns_names: Vec<String>,
    /// Addresses of a server.
    pub ip_addresses: Vec<IpAddr>,
    /// What for.
    pub usage: Usage,
    /// How long, from now.
    pub validity: Duration,
}

impl Profile {
    /// A client with groups.
    pub fn client(common_name: &str, organizations: &[&str], validity: Duration) -> Self {
        Self {
            common_name: common_name.to_owned(),
            organizations: organizations.iter().map(ToString::to_string).collect(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            usage: Usage::Client,
            validity,
        }
    }

    /// A server under names and addresses (`localhost`, `127.0.0.1`).
    pub fn server(common_name: &str, names: &[String], validity: Duration) -> Self {
        let (mut dns_names, mut ip_addresses) = (Vec::new(), Vec::new());
        for name in names {
            match name.parse::<IpAddr>() {
                Ok(address) => ip_addresses.push(address),
                Err(_) => dns_names.push(name.clone()),
            }
        }
        let (common_name, usage) = (common_name.to_owned(), Usage::Server);
        Self { common_name, organizations: Vec::new(), dns_names, ip_addresses, usage, validity }
    }

    pub(super) fn fits(&self, info: &CertInfo) -> bool {
        self.common_name == info.common_name
            && self.organizations == info.organizations
            && self.dns_names == info.dns_names
            && self.ip_addresses == info.ip_addresses
    }
}

/// A certificate with its key, as PEM.
#[derive(Clone)]
pub struct PemPair {
    /// The certificate, then intermediates.
    pub cert_pem: String,
    /// SEC1 (`EC PRIVATE KEY`) where it is handed out: some clients read no PKCS#8.
    pub key_pem: String,
}

impl std::fmt::Debug for PemPair {
    /// Never the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemPair").field("cert_pem", &self.cert_pem).finish_non_exhaustive()
    }
}

impl PemPair {
    /// For rustls; `what` names it in errors.
    pub fn cert_pair(&self, what: &str) -> Result<CertPair, PkiError> {
        Ok(CertPair::from_pem(what, self.cert_pem.as_bytes(), self.key_pem.as_bytes())?)
    }
}
