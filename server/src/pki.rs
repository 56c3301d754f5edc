//! The internal trust: one CA, and everything that it signs at start. Used for nothing else. Beside it the front proxy's identity,
//! which is another CA's.
//!
//! Files lie in the certificate folder: `internal-ca`, `control` (the gRPC server), `admin`, `facade` (clients).

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portico_auth::authn::FACADES;
use portico_kit::pki::{Authority, INTERNAL_CA, PemPair, PkiError, Profile};
use portico_machinery::user::MASTERS;

use crate::front_proxy::FrontProxyIdentity;

/// How long servers' and administrators' certificates are valid; renewed at start and while running.
const CERTIFICATE_LIFE: Duration = Duration::from_secs(365 * 86_400);
/// How long a facade's client certificate is valid.
const FACADE_LIFE: Duration = Duration::from_secs(30 * 86_400);
/// The name of the administrator in `admin.kubeconfig`.
const ADMIN: &str = "portico:admin";
/// The name of facades in `facade.kubeconfig`.
const FACADE: &str = "system:portico:facade";

/// The facade's serving certificate in its folder, as upstream names it.
const SERVING: &str = "apiserver";

/// What the internal CA has signed.
pub struct Pki {
    /// The CA.
    pub authority: Arc<Authority>,
    /// The gRPC server's.
    pub control: PemPair,
    /// The administrator's client certificate.
    pub admin: PemPair,
    /// Facades' first client certificate.
    pub facade: PemPair,
    /// Who speaks for users towards backends, where no flag names somebody.
    pub front_proxy: Option<FrontProxyIdentity>,
}

impl Pki {
    /// Loads or makes everything, a front proxy's identity if that is wanted. `names` are what the control service is called,
    /// besides localhost.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn load_or_create(dir: &Path, names: &[String], own_front_proxy: bool) -> Result<Self, PkiError> {
        let authority = Authority::load_or_create(dir, "internal-ca", INTERNAL_CA)?;
        let control = Profile::server("portico-control", &with_local(names), CERTIFICATE_LIFE);
        let admin = Profile::client(ADMIN, &[MASTERS], CERTIFICATE_LIFE);
        let facade = Profile::client(FACADE, &[FACADES], FACADE_LIFE);
        Ok(Self {
            control: authority.load_or_issue(dir, "control", &control)?.0,
            admin: authority.load_or_issue(dir, "admin", &admin)?.0,
            facade: authority.load_or_issue(dir, "facade", &facade)?.0,
            front_proxy: own_front_proxy.then(|| FrontProxyIdentity::load_or_create(dir)).transpose()?,
            authority: Arc::new(authority),
        })
    }

    /// The same while the process lives. The front proxy's CA stays the one published to backends, whatever became of its files.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn renewed(&self, dir: &Path, names: &[String]) -> Result<Self, PkiError> {
        let front_proxy = self.front_proxy.as_ref().map(|own| own.renewed(dir)).transpose()?;
        Ok(Self { front_proxy, ..Self::load_or_create(dir, names, false)? })
    }

    /// A serving certificate for the facade of the same process: the one that somebody has put into the folder, or one of
    /// ours.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn facade_serving(&self, dir: &Path, names: &[String]) -> Result<PemPair, PkiError> {
        if let Some(foreign) = self.authority.foreign_pair(dir, SERVING)? {
            return Ok(foreign);
        }
        let profile = Profile::server("portico-facade", &with_local(names), CERTIFICATE_LIFE);
        Ok(self.authority.load_or_issue(dir, SERVING, &profile)?.0)
    }

    /// What clients check that certificate with, PEM: a foreign certificate stands for itself, as its CA is not known.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn facade_trust(&self, dir: &Path) -> Result<String, PkiError> {
        let foreign = self.authority.foreign_pair(dir, SERVING)?;
        Ok(foreign.map_or_else(|| self.authority.cert_pem().to_owned(), |pair| pair.cert_pem))
    }
}

/// The names by which a client on this machine, and in a cluster, reaches a server.
fn with_local(names: &[String]) -> Vec<String> {
    let fixed = [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let mut all: Vec<String> = fixed.map(str::to_owned).to_vec();
    for name in names {
        let unspecified = name.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        if !unspecified && !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}
