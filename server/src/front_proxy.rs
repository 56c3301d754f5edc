//! The front proxy's identity where no flag names one: a CA, which backends read in the ConfigMap
//! `extension-apiserver-authentication`, and the client certificate that they are shown. The names are kubeadm's.
//!
//! Backends take whom this CA has signed for any user: it signs nothing else, and neither half of this program believes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portico_kit::pki::{Authority, FRONT_PROXY_CA, PairFiles, PemPair, PkiError, Profile};
use portico_machinery::FrontProxy;

use crate::settings::ServerSettings;

/// The CA's files in the folder of certificates.
pub(crate) const CA: &str = "front-proxy-ca";
/// The client certificate's files there, and its common name: the one name that backends accept.
pub(crate) const CLIENT: &str = "front-proxy-client";
/// How long this process's own certificate is valid; those of facades elsewhere are younger.
const CERTIFICATE_LIFE: Duration = Duration::from_secs(365 * 86_400);

/// The identity, as it lies in the folder of certificates.
pub struct FrontProxyIdentity {
    /// The CA.
    pub authority: Arc<Authority>,
    /// What backends are shown by this process.
    pub client: PemPair,
}

impl FrontProxyIdentity {
    /// Loads it, or makes what is missing or due.
    pub(crate) fn load_or_create(dir: &Path) -> Result<Self, PkiError> {
        let authority = Authority::load_or_create(dir, CA, FRONT_PROXY_CA)?;
        Self::of(Arc::new(authority), dir)
    }

    /// With another client certificate where that is due, of the same CA.
    pub(crate) fn renewed(&self, dir: &Path) -> Result<Self, PkiError> {
        Self::of(Arc::clone(&self.authority), dir)
    }

    fn of(authority: Arc<Authority>, dir: &Path) -> Result<Self, PkiError> {
        let (client, _) = authority.load_or_issue(dir, CLIENT, &client(CERTIFICATE_LIFE))?;
        Ok(Self { authority, client })
    }
}

/// A client that speaks for users towards backends.
pub(crate) fn client(life: Duration) -> Profile {
    Profile::client(CLIENT, &[], life)
}

/// Makes the CA, unless it is there.
pub(crate) fn make_ca(dir: &Path) -> Result<(), PkiError> {
    Authority::load_or_create(dir, CA, FRONT_PROXY_CA).map(drop)
}

/// These settings with the files of the process's own identity where they ask for one.
pub(crate) fn named(mut settings: ServerSettings) -> ServerSettings {
    if settings.own_front_proxy {
        let (ca, client) =
            (PairFiles::new(&settings.cert_dir, CA), PairFiles::new(&settings.cert_dir, CLIENT));
        settings.proxy_client = Some((client.cert().to_owned(), client.key().to_owned()));
        settings.request_header = Some(published(ca.cert().to_owned()));
    }
    settings
}

/// What kubeadm's flags have a kube-apiserver publish.
fn published(client_ca_file: PathBuf) -> FrontProxy {
    let one = |name: &str| vec![name.to_owned()];
    FrontProxy {
        client_ca_file,
        allowed_names: one(CLIENT),
        username_headers: one("X-Remote-User"),
        uid_headers: Vec::new(),
        group_headers: one("X-Remote-Group"),
        extra_headers_prefix: one("X-Remote-Extra-"),
    }
}
