//! Flags of certificate signing, with the names of kube-controller-manager: CAs and lifetime.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use portico_server::SigningSettings;

use super::SettingError;
use super::values::positive_duration;

/// Flags of certificate signing. Without any file, a CA is generated in the certificate directory.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Certificate signing"))]
pub(crate) struct Signing {
    /// CA certificate used by all signers of CertificateSigningRequests (PEM, one certificate).
    ///
    /// Cannot be combined with the --cluster-signing-* files of single signers. Without any of these files a CA is generated
    /// and kept in --cert-dir. If only some signers have files, requests for the other signers are not signed.
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_cert_file: Option<PathBuf>,
    /// Private key of --cluster-signing-cert-file (PEM): RSA, ECDSA or Ed25519.
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_key_file: Option<PathBuf>,
    /// CA certificate of the signer kubernetes.io/kubelet-serving (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_kubelet_serving_cert_file: Option<PathBuf>,
    /// Private key of --cluster-signing-kubelet-serving-cert-file (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_kubelet_serving_key_file: Option<PathBuf>,
    /// CA certificate of the signer kubernetes.io/kube-apiserver-client-kubelet (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_kubelet_client_cert_file: Option<PathBuf>,
    /// Private key of --cluster-signing-kubelet-client-cert-file (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_kubelet_client_key_file: Option<PathBuf>,
    /// CA certificate of the signer kubernetes.io/kube-apiserver-client (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_kube_apiserver_client_cert_file: Option<PathBuf>,
    /// Private key of --cluster-signing-kube-apiserver-client-cert-file (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_kube_apiserver_client_key_file: Option<PathBuf>,
    /// CA certificate of the signer kubernetes.io/legacy-unknown (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_legacy_unknown_cert_file: Option<PathBuf>,
    /// Private key of --cluster-signing-legacy-unknown-cert-file (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_signing_legacy_unknown_key_file: Option<PathBuf>,
    /// Maximum lifetime of signed certificates.
    ///
    /// A request can set a shorter lifetime in spec.expirationSeconds.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "8760h")]
    pub(crate) cluster_signing_duration: Duration,
}

/// Flags that name a CA certificate and its key, and their values.
struct CertificateFlags<'a> {
    flags: [&'static str; 2],
    cert: Option<&'a Path>,
    key: Option<&'a Path>,
}

impl<'a> CertificateFlags<'a> {
    fn configured_files(self) -> impl Iterator<Item = (&'static str, &'a Path)> {
        let paths = self.flags.into_iter().zip([self.cert, self.key]);
        paths.filter_map(|(flag, path)| Some((flag, path?)))
    }

    fn files(&self) -> Option<(PathBuf, PathBuf)> {
        self.cert.map(Path::to_owned).zip(self.key.map(Path::to_owned))
    }

    fn is_set(&self) -> bool {
        self.cert.is_some() || self.key.is_some()
    }
}

impl Signing {
    /// Returns the pair that all signers use, then the pair of each signer.
    fn pairs(&self) -> [CertificateFlags<'_>; 5] {
        [
            CertificateFlags {
                flags: ["--cluster-signing-cert-file", "--cluster-signing-key-file"],
                cert: self.cluster_signing_cert_file.as_deref(),
                key: self.cluster_signing_key_file.as_deref(),
            },
            CertificateFlags {
                flags: [
                    "--cluster-signing-kubelet-serving-cert-file",
                    "--cluster-signing-kubelet-serving-key-file",
                ],
                cert: self.cluster_signing_kubelet_serving_cert_file.as_deref(),
                key: self.cluster_signing_kubelet_serving_key_file.as_deref(),
            },
            CertificateFlags {
                flags: [
                    "--cluster-signing-kubelet-client-cert-file",
                    "--cluster-signing-kubelet-client-key-file",
                ],
                cert: self.cluster_signing_kubelet_client_cert_file.as_deref(),
                key: self.cluster_signing_kubelet_client_key_file.as_deref(),
            },
            CertificateFlags {
                flags: [
                    "--cluster-signing-kube-apiserver-client-cert-file",
                    "--cluster-signing-kube-apiserver-client-key-file",
                ],
                cert: self.cluster_signing_kube_apiserver_client_cert_file.as_deref(),
                key: self.cluster_signing_kube_apiserver_client_key_file.as_deref(),
            },
            CertificateFlags {
                flags: [
                    "--cluster-signing-legacy-unknown-cert-file",
                    "--cluster-signing-legacy-unknown-key-file",
                ],
                cert: self.cluster_signing_legacy_unknown_cert_file.as_deref(),
                key: self.cluster_signing_legacy_unknown_key_file.as_deref(),
            },
        ]
    }

    /// Returns all configured files with their flags.
    pub(super) fn files(&self) -> Vec<(&'static str, &Path)> {
        self.pairs().into_iter().flat_map(CertificateFlags::configured_files).collect()
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        let pairs = self.pairs();
        for pair in &pairs {
            let [cert, key] = pair.flags;
            match (pair.cert, pair.key) {
                (Some(_), None) => return Err(SettingError::new(key, format!("required by {cert}"))),
                (None, Some(_)) => return Err(SettingError::new(cert, format!("required by {key}"))),
                _ => {}
            }
        }
        let [all, single @ ..] = &pairs;
        match all.is_set().then(|| single.iter().find(|pair| pair.is_set())).flatten() {
            Some(pair) => Err(SettingError::new(
                pair.flags[0],
                "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time",
            )),
            None => Ok(()),
        }
    }

    /// Returns the settings for the control service.
    pub(crate) fn server(&self) -> SigningSettings {
        let [all, kubelet_serving, kubelet_client, api_client, legacy_unknown] = self.pairs();
        SigningSettings {
            all: all.files(),
            api_client: api_client.files(),
            kubelet_client: kubelet_client.files(),
            kubelet_serving: kubelet_serving.files(),
            legacy_unknown: legacy_unknown.files(),
            duration: self.cluster_signing_duration,
        }
    }
}
