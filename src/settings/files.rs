//! Checks that the files that flags name are readable and have the right content.

use std::path::{Path, PathBuf};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use portico_gostd::os::error_text;
use portico_kit::config_file;
use portico_kit::pki::pem_reason;

use super::{SettingError, Settings};

/// Expected content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileContent {
    /// At least one certificate in PEM format.
    Certificates,
    /// A private key in PEM format.
    Key,
    /// Any content; the part that uses the file checks it.
    Text,
}

impl Settings {
    /// Reads and checks every file that a flag names.
    pub(super) fn check_files(&self) -> Result<(), SettingError> {
        use FileContent::{Certificates, Key, Text};
        let (a, s, p, k) = (&self.authentication, &self.serving, &self.proxying, &self.kubelets);
        let z = &self.authorization;
        let files: [(&str, &Option<PathBuf>, FileContent); 17] = [
            ("--client-ca-file", &a.client_ca_file, Certificates),
            ("--requestheader-client-ca-file", &a.requestheader_client_ca_file, Certificates),
            ("--token-auth-file", &a.token_auth_file, Text),
            ("--authentication-token-webhook-config-file", &a.authentication_token_webhook_config_file, Text),
            ("--authentication-config", &a.oidc.authentication_config, Text),
            ("--oidc-ca-file", &a.oidc.oidc_ca_file, Certificates),
            ("--authorization-config", &z.authorization_config, Text),
            ("--authorization-policy-file", &z.authorization_policy_file, Text),
            ("--authorization-webhook-config-file", &z.authorization_webhook_config_file, Text),
            ("--tls-cert-file", &s.tls_cert_file, Certificates),
            ("--tls-private-key-file", &s.tls_private_key_file, Key),
            ("--proxy-client-cert-file", &p.proxy_client_cert_file, Certificates),
            ("--proxy-client-key-file", &p.proxy_client_key_file, Key),
            ("--kubelet-client-certificate", &k.kubelet_client_certificate, Certificates),
            ("--kubelet-client-key", &k.kubelet_client_key, Key),
            ("--kubelet-certificate-authority", &k.kubelet_certificate_authority, Certificates),
            ("--egress-selector-config-file", &p.egress_selector_config_file, Text),
        ];
        for path in &self.control.control_kubeconfig {
            check("--control-kubeconfig", path, Text)?;
        }
        for (setting, path, holds) in files {
            if let Some(path) = path {
                check(setting, path, holds)?;
            }
        }
        for (setting, path) in self.signing.files() {
            check(setting, path, if setting.ends_with("-key-file") { Key } else { Certificates })?;
        }
        for (cert, key) in s.sni_pairs()? {
            check("--tls-sni-cert-key", &cert, Certificates)?;
            check("--tls-sni-cert-key", &key, Key)?;
        }
        Ok(())
    }
}

fn check(setting: &str, path: &Path, content: FileContent) -> Result<(), SettingError> {
    let invalid =
        |reason: &dyn std::fmt::Display| SettingError::new(setting, format!("{}: {reason}", path.display()));
    let bytes = read(setting, path)?;
    match content {
        FileContent::Text => Ok(()),
        FileContent::Key => {
            PrivateKeyDer::from_pem_slice(&bytes).map(drop).map_err(|e| invalid(&pem_reason(&e)))
        }
        FileContent::Certificates => {
            let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
            match all.map_err(|e| invalid(&pem_reason(&e)))?.is_empty() {
                true => Err(invalid(&"contains no PEM certificate")),
                false => Ok(()),
            }
        }
    }
}

/// Reads a file; an error names the flag and the file.
pub(super) fn read(setting: &str, path: &Path) -> Result<Vec<u8>, SettingError> {
    config_file::read(path)
        .map_err(|e| SettingError::new(setting, format!("{}: {}", path.display(), error_text(&e))))
}
