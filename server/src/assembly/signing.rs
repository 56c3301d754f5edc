//! The CAs that sign certificate requests: those of files, as they change, or one of our own, which is then trusted with client
//! certificates. The internal CA never signs such requests, and the signing CA signs nothing else.

use std::path::Path;
use std::sync::Arc;

use portico_controllers::certificates::signing::{self, CurrentSigner, Signers};
use portico_kit::certs::FileWatch;
use portico_kit::pki::{Authority, RequestSigner};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use portico_proto::convert::{Payload, PayloadKind, setting};

use super::error::StartError;
use crate::grpc::config::board::Board;
use crate::pki::Pki;
use crate::settings::{CaFiles, ServerSettings, SigningSettings};

/// Its files in the folder of certificates.
pub(super) const OWN: &str = "signing-ca";
/// Its common name.
const OWN_NAME: &str = "portico-signing-ca";

/// Whether a CA of our own signs: somebody does, and no file says who.
pub(super) fn has_own(settings: &ServerSettings) -> bool {
    let files = &settings.signing;
    settings.controllers.contains(signing::NAME) && files.all.is_none() && !has_single(files)
}

/// Makes it, unless it is there.
pub(super) fn make_own(dir: &Path) -> Result<(), StartError> {
    Ok(Authority::load_or_create(dir, OWN, OWN_NAME).map(drop)?)
}

/// See the module.
pub(super) struct Signing {
    pub(super) signers: Signers,
    /// The certificate of our own CA, PEM, where it signs.
    pub(super) own_ca: Option<String>,
    /// CAs that may sign nothing for others, by what they are called: what the internal one has signed makes facades, and what the
    /// front proxy's has signed is any user to backends.
    private: Arc<[(&'static str, String)]>,
    files: Vec<FileWatch<RequestSigner>>,
}

impl Signing {
    /// Reads files, or makes a CA on the first start; nothing where nobody signs.
    ///
    /// # Errors
    /// [`StartError`] names the file.
    pub(super) fn load(settings: &ServerSettings, pki: &Pki) -> Result<Self, StartError> {
        let internal = ("the internal CA", pki.authority.cert_pem().to_owned());
        let front_proxy = pki.front_proxy.as_ref();
        let front_proxy =
            front_proxy.map(|own| ("the front proxy's CA", own.authority.cert_pem().to_owned()));
        let mut loaded = Self {
            signers: Signers::default(),
            own_ca: None,
            private: [internal].into_iter().chain(front_proxy).collect(),
            files: Vec::new(),
        };
        let files = &settings.signing;
        if !settings.controllers.contains(signing::NAME) {
            return Ok(loaded);
        }
        if let Some(all) = &files.all {
            loaded.signers = Signers::all(&loaded.watched(all)?);
        } else if has_single(files) {
            let mut signer =
                |files: &Option<CaFiles>| files.as_ref().map(|files| loaded.watched(files)).transpose();
            let signers = Signers {
                api_client: signer(&files.api_client)?,
                kubelet_client: signer(&files.kubelet_client)?,
                kubelet_serving: signer(&files.kubelet_serving)?,
                legacy_unknown: signer(&files.legacy_unknown)?,
            };
            loaded.signers = signers;
        } else {
            let own = Authority::load_or_create(&settings.cert_dir, OWN, OWN_NAME)?;
            let signer = Arc::new(own.signer()?);
            let current: CurrentSigner = Arc::new(move || Arc::clone(&signer));
            loaded.signers = Signers::all(&current);
            loaded.own_ca = Some(own.cert_pem().to_owned());
        }
        Ok(loaded)
    }

    fn watched(&mut self, (cert, key): &CaFiles) -> Result<CurrentSigner, StartError> {
        let (what, private) = (cert.display().to_string(), Arc::clone(&self.private));
        let parse = move |raw: &[Vec<u8>]| {
            let [cert, key] = raw else { return Err("two files are required".to_owned()) };
            let pair = CertPair::from_pem(&what, cert, key).map_err(|error| error.to_string())?;
            let signer = RequestSigner::new(&what, &pair).map_err(|error| error.to_string())?;
            for (name, ca) in private.iter() {
                if signer.shares_key_with(ca).map_err(|error| error.to_string())? {
                    return Err(format!("{what}: {name} cannot sign certificate requests"));
                }
            }
            Ok(signer)
        };
        let watch = FileWatch::new(vec![cert.clone(), key.clone()], parse)?;
        self.files.push(watch.clone());
        Ok(Arc::new(move || watch.current()))
    }

    /// Takes changed files up.
    pub(super) fn watch(&self, tasks: &TaskSet) {
        self.files.iter().for_each(|file| file.watch(tasks, "cluster-signing-files"));
    }

    /// Has facades trust our own CA.
    pub(super) fn publish(&self, board: &Board) {
        let payload = self.own_ca.clone().map(Payload::Setting);
        board.post(payload.map(|ca| (PayloadKind::Setting, setting::SIGNING_CA.to_owned(), Some(ca))));
    }
}

fn has_single(files: &SigningSettings) -> bool {
    [&files.api_client, &files.kubelet_client, &files.kubelet_serving, &files.legacy_unknown]
        .into_iter()
        .any(Option::is_some)
}
