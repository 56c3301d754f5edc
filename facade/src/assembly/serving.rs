//! Serving certificates of the facade: from files or from a channel, replaced while the facade serves.

use portico_kit::certs::{FileError, FileWatch};
use portico_kit::pki::CertInfo;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ServerTls, ServerTlsOptions, SniCert};
use tokio::sync::watch;

use super::error::StartError;
use crate::settings::{FacadeSettings, ServingCertificate};

/// TLS of the listener and the source of its certificates.
#[derive(Clone)]
pub(super) struct ServingTls {
    pub(super) tls: ServerTls,
    default: Source,
    sni: Vec<FileWatch<CertPair>>,
}

#[derive(Clone)]
enum Source {
    Files(FileWatch<CertPair>),
    Channel(watch::Receiver<CertPair>),
}

impl Source {
    fn current(&self) -> CertPair {
        match self {
            Self::Files(files) => CertPair::clone(&files.current()),
            Self::Channel(given) => given.borrow().clone(),
        }
    }
}

impl ServingTls {
    /// Reads all certificates and keys.
    pub(super) fn load(settings: &FacadeSettings) -> Result<Self, StartError> {
        let default = match &settings.serving {
            ServingCertificate::Files { cert, key } => {
                Source::Files(FileWatch::cert_pair("--tls-cert-file", cert.clone(), key.clone())?)
            }
            ServingCertificate::Channel(given) => Source::Channel(given.clone()),
        };
        let pair = |(cert, key): &(_, _)| {
            FileWatch::cert_pair("--tls-sni-cert-key", Clone::clone(cert), Clone::clone(key))
        };
        let sni = settings.sni.iter().map(pair).collect::<Result<Vec<_>, _>>()?;
        let mut options = ServerTlsOptions {
            min_version: settings.tls_min_version,
            cipher_suites: settings.tls_cipher_suites.clone(),
            key_exchanges: settings.tls_key_exchanges.clone(),
            ..ServerTlsOptions::default()
        };
        if settings.disable_http2_serving {
            options.alpn = vec![b"http/1.1".to_vec()];
        }
        let tls = ServerTls::new(default.current(), &sni_certificates(&sni), &options)?;
        Ok(Self { tls, default, sni })
    }

    /// Follows changes of the files and of the channel.
    pub(super) fn follow(&self, tasks: &TaskSet) {
        match &self.default {
            Source::Files(files) => self.follow_files(tasks, files, "tls-cert-file"),
            Source::Channel(channel) => {
                let (this, mut channel) = (self.clone(), channel.clone());
                tasks.spawn_until_cancelled("serving-certificate", async move {
                    while channel.changed().await.is_ok() {
                        this.replace();
                    }
                });
            }
        }
        for files in &self.sni {
            self.follow_files(tasks, files, "tls-sni-cert-key");
        }
    }

    fn follow_files(&self, tasks: &TaskSet, files: &FileWatch<CertPair>, name: &'static str) {
        files.watch(tasks, name);
        let (this, mut changes) = (self.clone(), files.subscribe());
        tasks.spawn_until_cancelled(name, async move {
            while changes.changed().await.is_ok() {
                this.replace();
            }
        });
    }

    /// Rereads the files now.
    pub(super) async fn reload(&self) -> Vec<FileError> {
        let mut errors = Vec::new();
        if let Source::Files(files) = &self.default {
            errors.extend(files.reload().await.err());
        }
        for files in &self.sni {
            errors.extend(files.reload().await.err());
        }
        errors
    }

    /// Returns the certificates in use.
    pub(super) fn certificates(&self) -> Vec<(&'static str, CertInfo)> {
        let by_name = self.sni.iter().map(|files| ("serving by name", files.current().info().clone()));
        std::iter::once(("serving", self.default.current().info().clone())).chain(by_name).collect()
    }

    fn replace(&self) {
        self.tls.replace(self.default.current(), &sni_certificates(&self.sni));
    }
}

fn sni_certificates(sni: &[FileWatch<CertPair>]) -> Vec<SniCert> {
    sni.iter().map(|files| SniCert { pair: CertPair::clone(&files.current()), names: Vec::new() }).collect()
}
