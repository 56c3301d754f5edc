//! Which etcd, where in it, and how long it is waited for. Values only: flags and files are read elsewhere.

use std::fmt;
use std::time::Duration;

/// Settings of a store in etcd.
#[derive(Clone)]
pub struct EtcdSettings {
    /// The URLs of its members.
    pub endpoints: Vec<String>,
    /// What all keys begin with, as kube-apiserver's `--etcd-prefix`: `/registry`.
    pub prefix: String,
    /// The PEM of the authorities that its members' certificates are checked by. None: those of the system.
    pub ca: Option<Vec<u8>>,
    /// The PEM of the certificate and the key that this process shows.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// How long it is waited for at the start.
    pub connect_timeout: Duration,
    /// How long it may take for one request.
    pub request_timeout: Duration,
    /// How often its history is compacted; zero: never by this process.
    pub compaction_interval: Duration,
    /// For how long a lease of objects that expire is given to further ones, at most.
    pub lease_reuse: Duration,
    /// How many objects one lease may have.
    pub lease_objects: u64,
}

impl EtcdSettings {
    /// The defaults, which are kube-apiserver's, of these members.
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

    /// The prefix with one slash at its beginning and one at its end.
    pub(super) fn root(&self) -> String {
        match self.prefix.trim_matches('/') {
            "" => "/".to_owned(),
            inner => format!("/{inner}/"),
        }
    }

    /// Whether this process shows no certificate to members that may want one: they end the connection without one, as a rule.
    pub(super) fn shows_nothing(&self) -> bool {
        self.identity.is_none() && self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://"))
    }

    /// Where this is, for messages.
    pub fn place(&self) -> String {
        format!("etcd at {}", self.endpoints.join(", "))
    }
}

impl fmt::Debug for EtcdSettings {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdSettings")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
