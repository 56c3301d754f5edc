//! Settings of a store in etcd. Plain values: flags and files are read by other crates.

use std::fmt;
use std::time::Duration;

/// Settings of a store in etcd.
#[derive(Clone)]
pub struct EtcdSettings {
    /// URLs of the members.
    pub endpoints: Vec<String>,
    /// Prefix of all keys, like kube-apiserver's `--etcd-prefix`: `/registry`.
    pub prefix: String,
    /// PEM of the CAs that verify the certificates of the members; `None` for those of the system.
    pub ca: Option<Vec<u8>>,
    /// PEM of the client certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Maximum wait for etcd at the start.
    pub connect_timeout: Duration,
    /// Timeout of one request.
    pub request_timeout: Duration,
    /// Interval of compactions; zero if this process does not compact.
    pub compaction_interval: Duration,
    /// Maximum time for which a lease is reused for further objects.
    pub lease_reuse: Duration,
    /// Maximum number of objects of one lease.
    pub lease_objects: u64,
}

impl EtcdSettings {
    /// Returns the default settings, which are kube-apiserver's, with these members.
    pub fn new(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            prefix: "/registry".to_owned(),
            ca: None,
            identity: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(10),
            compaction_interval: Duration::from_secs(300),
            lease_reuse: Duration::from_secs(60),
            lease_objects: 1_000,
        }
    }

    /// Returns the prefix with one slash at its start and one at its end.
    pub(super) fn root(&self) -> String {
        match self.prefix.trim_matches('/') {
            "" => "/".to_owned(),
            inner => format!("/{inner}/"),
        }
    }

    /// True if this process has no client certificate and uses TLS: members that require a certificate
    /// usually close the connection.
    pub(super) fn lacks_client_certificate(&self) -> bool {
        self.identity.is_none() && self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://"))
    }

    /// Returns the location for messages.
    pub fn place(&self) -> String {
        format!("etcd at {}", self.endpoints.join(", "))
    }
}

impl fmt::Debug for EtcdSettings {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdSettings")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
