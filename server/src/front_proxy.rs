//! Identity of the front proxy if no flag names one: a CA, which backends read from the ConfigMap
//! `extension-apiserver-authentication`, and a client certificate for connections to backends. The names are those of kubeadm.
//!
//! Backends accept a client with a certificate of this CA as any user. The CA therefore signs nothing else, and neither control
//! services nor facades trust it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portico_kit::pki::{Authority, CertProfile, FRONT_PROXY_CA, PairFiles, PemPair, PkiError};
use portico_machinery::FrontProxy;

use crate::settings::ServerSettings;

/// Base name of the CA's files in the certificate folder.
pub(crate) const CA: &str = "front-proxy-ca";
/// Base name of the client certificate's files, and its common name, which is the only name that backends accept.
pub(crate) const CLIENT: &str = "front-proxy-client";
/// Lifetime of this process's certificate; those of remote facades are shorter.
const CERTIFICATE_LIFE: Duration = Duration::from_secs(365 * 86_400);

/// Identity of the front proxy, stored in the certificate folder.
pub struct FrontProxyIdentity {
    /// CA of the front proxy.
    pub authority: Arc<Authority>,
    /// Client certificate that this process presents to backends.
    pub client: PemPair,
}

impl FrontProxyIdentity {
    /// Loads the identity; creates missing parts and renews a certificate that is due.
    pub(crate) fn load_or_create(dir: &Path) -> Result<Self, PkiError> {
        let authority = Authority::load_or_create(dir, CA, FRONT_PROXY_CA)?;
        Self::with_client(Arc::new(authority), dir)
    }

    /// Returns the identity with a renewed client certificate of the same CA, if it is due.
    pub(crate) fn renew(&self, dir: &Path) -> Result<Self, PkiError> {
        Self::with_client(Arc::clone(&self.authority), dir)
    }

    fn with_client(authority: Arc<Authority>, dir: &Path) -> Result<Self, PkiError> {
        let (client, _) = authority.load_or_issue(dir, CLIENT, &client_profile(CERTIFICATE_LIFE))?;
        Ok(Self { authority, client })
    }
}

/// Returns the profile of the client certificate for backends.
pub(crate) fn client_profile(lifetime: Duration) -> CertProfile {
    CertProfile::client(CLIENT, &[], lifetime)
}

/// Creates the CA, unless it exists.
pub(crate) fn create_ca(dir: &Path) -> Result<(), PkiError> {
    Authority::load_or_create(dir, CA, FRONT_PROXY_CA).map(drop)
}

/// Adds the files of the process's own identity to the settings, if they require one.
pub(crate) fn with_own_identity(mut settings: ServerSettings) -> ServerSettings {
    if settings.own_front_proxy {
        let (ca, client) =
            (PairFiles::new(&settings.cert_dir, CA), PairFiles::new(&settings.cert_dir, CLIENT));
        settings.proxy_client = Some((client.cert().to_owned(), client.key().to_owned()));
        settings.request_header = Some(published_settings(ca.cert().to_owned()));
    }
    settings
}

/// Returns the settings that kubeadm's flags make a kube-apiserver publish.
fn published_settings(client_ca_file: PathBuf) -> FrontProxy {
    let single = |name: &str| vec![name.to_owned()];
    FrontProxy {
        client_ca_file,
        allowed_names: single(CLIENT),
        username_headers: single("X-Remote-User"),
        uid_headers: Vec::new(),
        group_headers: single("X-Remote-Group"),
        extra_headers_prefix: single("X-Remote-Extra-"),
    }
}
