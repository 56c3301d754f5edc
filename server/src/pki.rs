//! Internal PKI: one CA with all certificates that it signs at startup, used for nothing else. Contains the identity of the front
//! proxy as well, which has a separate CA.
//!
//! Files in the certificate folder: `internal-ca`, `control` (the gRPC server), `admin`, `facade` (clients).

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portico_auth::authn::FACADES_GROUP;
use portico_kit::pki::{Authority, CertProfile, INTERNAL_CA, PemPair, PkiError};
use portico_machinery::user::MASTERS;

use crate::front_proxy::FrontProxyIdentity;

/// Lifetime of certificates of servers and administrators; renewed at startup and while running.
const CERTIFICATE_LIFE: Duration = Duration::from_secs(365 * 86_400);
/// Lifetime of a facade's client certificate.
const FACADE_LIFE: Duration = Duration::from_secs(30 * 86_400);
/// Name of the administrator in `admin.kubeconfig`.
const ADMIN: &str = "portico:admin";
/// Name of facades in `facade.kubeconfig`.
const FACADE: &str = "system:portico:facade";

/// Base name of the facade's serving certificate in its folder, as in upstream.
const SERVING: &str = "apiserver";

/// The internal CA and its certificates.
pub struct Pki {
    /// Internal CA.
    pub authority: Arc<Authority>,
    /// Certificate of the gRPC server.
    pub control: PemPair,
    /// The administrator's client certificate.
    pub admin: PemPair,
    /// Initial client certificate of facades.
    pub facade: PemPair,
    /// Identity of the front proxy; `None` if flags name another one.
    pub front_proxy: Option<FrontProxyIdentity>,
}

impl Pki {
    /// Loads all certificates, or creates them; the identity of a front proxy only if `own_front_proxy` is set. `names` are the
    /// names of the control service, except for localhost.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn load_or_create(dir: &Path, names: &[String], own_front_proxy: bool) -> Result<Self, PkiError> {
        let authority = Authority::load_or_create(dir, "internal-ca", INTERNAL_CA)?;
        let control = CertProfile::server("portico-control", &with_local_names(names), CERTIFICATE_LIFE);
        let admin = CertProfile::client(ADMIN, &[MASTERS], CERTIFICATE_LIFE);
        let facade = CertProfile::client(FACADE, &[FACADES_GROUP], FACADE_LIFE);
        Ok(Self {
            control: authority.load_or_issue(dir, "control", &control)?.0,
            admin: authority.load_or_issue(dir, "admin", &admin)?.0,
            facade: authority.load_or_issue(dir, "facade", &facade)?.0,
            front_proxy: own_front_proxy.then(|| FrontProxyIdentity::load_or_create(dir)).transpose()?,
            authority: Arc::new(authority),
        })
    }

    /// Renews certificates of a running process. The CA of the front proxy remains the published one, even if its
    /// files have changed.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn renew(&self, dir: &Path, names: &[String]) -> Result<Self, PkiError> {
        let front_proxy = self.front_proxy.as_ref().map(|identity| identity.renew(dir)).transpose()?;
        Ok(Self { front_proxy, ..Self::load_or_create(dir, names, false)? })
    }

    /// Returns the serving certificate for the facade of the same process: a certificate that was placed in the folder, or one of
    /// the internal CA.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn facade_serving(&self, dir: &Path, names: &[String]) -> Result<PemPair, PkiError> {
        if let Some(foreign) = self.authority.foreign_pair(dir, SERVING)? {
            return Ok(foreign);
        }
        let profile = CertProfile::server("portico-facade", &with_local_names(names), CERTIFICATE_LIFE);
        Ok(self.authority.load_or_issue(dir, SERVING, &profile)?.0)
    }

    /// Returns the CA for that certificate as PEM. A certificate that was placed in the folder is returned itself, because its
    /// CA is unknown.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn facade_trust(&self, dir: &Path) -> Result<String, PkiError> {
        let foreign = self.authority.foreign_pair(dir, SERVING)?;
        Ok(foreign.map_or_else(|| self.authority.cert_pem().to_owned(), |pair| pair.cert_pem))
    }
}

/// Adds the names under which a server is reachable on this machine and in a cluster.
fn with_local_names(names: &[String]) -> Vec<String> {
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
