//! CAs that sign certificate requests: those of files, with their changes, or Portico's own signing CA, which is then trusted for
//! client certificates. The internal CA never signs such requests, and the signing CA signs nothing else.

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

/// Base name of the signing CA's files in the certificate folder.
pub(super) const OWN_CA: &str = "signing-ca";
/// Common name of the signing CA.
const OWN_CA_NAME: &str = "portico-signing-ca";

/// True if Portico's own signing CA signs: signing is enabled, and no file names another CA.
pub(super) fn has_own_ca(settings: &ServerSettings) -> bool {
    let files = &settings.signing;
    settings.controllers.contains(signing::NAME) && files.all.is_none() && !has_signer_files(files)
}

/// Creates the signing CA, unless it exists.
pub(super) fn create_own_ca(dir: &Path) -> Result<(), StartError> {
    Ok(Authority::load_or_create(dir, OWN_CA, OWN_CA_NAME).map(drop)?)
}

/// CAs that sign certificate requests.
pub(super) struct RequestSigning {
    pub(super) signers: Signers,
    /// Certificate of Portico's own signing CA as PEM; `None` if it does not sign.
    pub(super) own_ca: Option<String>,
    /// CAs that must not sign certificate requests, by name: certificates of the internal CA identify facades, and a certificate
    /// of the front proxy's CA can act as any user towards backends.
    forbidden_cas: Arc<[(&'static str, String)]>,
    files: Vec<FileWatch<RequestSigner>>,
}

impl RequestSigning {
    /// Reads the files, or creates a CA on the first start. Contains no signers if signing is disabled.
    ///
    /// # Errors
    /// [`StartError`] names the file.
    pub(super) fn load(settings: &ServerSettings, pki: &Pki) -> Result<Self, StartError> {
        let internal = ("the internal CA", pki.authority.cert_pem().to_owned());
        let front_proxy = pki.front_proxy.as_ref();
        let front_proxy =
            front_proxy.map(|identity| ("the front proxy's CA", identity.authority.cert_pem().to_owned()));
        let mut loaded = Self {
            signers: Signers::default(),
            own_ca: None,
            forbidden_cas: [internal].into_iter().chain(front_proxy).collect(),
            files: Vec::new(),
        };
        let files = &settings.signing;
        if !settings.controllers.contains(signing::NAME) {
            return Ok(loaded);
        }
        if let Some(all) = &files.all {
            loaded.signers = Signers::with_single_ca(&loaded.watch_files(all)?);
        } else if has_signer_files(files) {
            let mut signer =
                |files: &Option<CaFiles>| files.as_ref().map(|files| loaded.watch_files(files)).transpose();
            let signers = Signers {
                api_client: signer(&files.api_client)?,
                kubelet_client: signer(&files.kubelet_client)?,
                kubelet_serving: signer(&files.kubelet_serving)?,
                legacy_unknown: signer(&files.legacy_unknown)?,
            };
            loaded.signers = signers;
        } else {
            let own_ca = Authority::load_or_create(&settings.cert_dir, OWN_CA, OWN_CA_NAME)?;
            let signer = Arc::new(own_ca.signer()?);
            let current: CurrentSigner = Arc::new(move || Arc::clone(&signer));
            loaded.signers = Signers::with_single_ca(&current);
            loaded.own_ca = Some(own_ca.cert_pem().to_owned());
        }
        Ok(loaded)
    }

    fn watch_files(&mut self, (cert, key): &CaFiles) -> Result<CurrentSigner, StartError> {
        let (cert_path, private) = (cert.display().to_string(), Arc::clone(&self.forbidden_cas));
        let parse = move |raw: &[Vec<u8>]| {
            let [cert, key] = raw else { return Err("two files are required".to_owned()) };
            let pair = CertPair::from_pem(&cert_path, cert, key).map_err(|error| error.to_string())?;
            let signer = RequestSigner::new(&cert_path, &pair).map_err(|error| error.to_string())?;
            for (name, ca) in private.iter() {
                if signer.shares_key_with(ca).map_err(|error| error.to_string())? {
                    return Err(format!("{cert_path}: {name} cannot sign certificate requests"));
                }
            }
            Ok(signer)
        };
        let watch = FileWatch::new(vec![cert.clone(), key.clone()], parse)?;
        self.files.push(watch.clone());
        Ok(Arc::new(move || watch.current()))
    }

    /// Reloads changed files.
    pub(super) fn watch(&self, tasks: &TaskSet) {
        self.files.iter().for_each(|file| file.watch(tasks, "cluster-signing-files"));
    }

    /// Publishes Portico's own signing CA to facades, which trust it.
    pub(super) fn publish(&self, board: &Board) {
        let payload = self.own_ca.clone().map(Payload::Setting);
        board.post(payload.map(|ca| (PayloadKind::Setting, setting::SIGNING_CA.to_owned(), Some(ca))));
    }
}

fn has_signer_files(files: &SigningSettings) -> bool {
    [&files.api_client, &files.kubelet_client, &files.kubelet_serving, &files.legacy_unknown]
        .into_iter()
        .any(Option::is_some)
}
