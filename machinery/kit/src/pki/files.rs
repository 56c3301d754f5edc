//! Certificate and key on disk, `<dir>/<name>.crt` and `.key`: both exist or neither.
//!
//! Does not depend on the issuer or the validity of the certificate.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::profile::PemPair;
use super::{PkiError, parse_certs};
use crate::atomic_file::{self, PRIVATE_MODE, PUBLIC_MODE};

/// Paths of a pair.
#[derive(Clone, Debug)]
pub struct PairFiles {
    cert: PathBuf,
    key: PathBuf,
    /// Path of a key whose certificate is being written.
    new_key: PathBuf,
}

impl PairFiles {
    /// Returns the paths for a name in a folder.
    #[must_use]
    pub fn new(dir: &Path, name: &str) -> Self {
        let file = |suffix: &str| dir.join(format!("{name}.{suffix}"));
        Self { cert: file("crt"), key: file("key"), new_key: file("key.new") }
    }

    /// Returns the path of the certificate.
    #[must_use]
    pub fn cert(&self) -> &Path {
        &self.cert
    }

    /// Returns the path of the key.
    #[must_use]
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// Reads the pair; `None` if neither file exists.
    ///
    /// # Errors
    /// [`PkiError::IncompletePair`] if only one of the files exists: another program may own it. Upstream's `CanReadCertAndKey`
    /// rejects that as well.
    pub fn read(&self) -> Result<Option<PemPair>, PkiError> {
        let half = |present: &Path, missing: &Path| {
            Err(PkiError::IncompletePair { present: present.to_owned(), missing: missing.to_owned() })
        };
        match (read_text(&self.cert)?, read_text(&self.key)?) {
            (Some(cert_pem), Some(key_pem)) => Ok(Some(PemPair { cert_pem, key_pem })),
            (None, None) => Ok(None),
            (None, Some(_)) => half(&self.key, &self.cert),
            // An interrupted write.
            (Some(cert_pem), None) => match read_text(&self.new_key)? {
                Some(key_pem) => {
                    self.rename_new_key()?;
                    Ok(Some(PemPair { cert_pem, key_pem }))
                }
                None => half(&self.cert, &self.key),
            },
        }
    }

    /// Stores a pair: the folder with mode 0700, the key with mode 0600.
    ///
    /// The key is written first, under another name. After an interruption, the next start therefore finds a complete pair or
    /// none, and a key without a certificate does not come from this function.
    ///
    /// # Errors
    /// Returns a [`PkiError`] that names the file.
    pub fn write(&self, pair: &PemPair) -> Result<(), PkiError> {
        parse_certs(&self.cert.display().to_string(), pair.cert_pem.as_bytes())?;
        if let Some(dir) = self.key.parent() {
            atomic_file::create_private_dir(dir).map_err(file_error(dir))?;
        }
        atomic_file::write(&self.new_key, pair.key_pem.as_bytes(), PRIVATE_MODE)
            .map_err(file_error(&self.new_key))?;
        atomic_file::write(&self.cert, pair.cert_pem.as_bytes(), PUBLIC_MODE)
            .map_err(file_error(&self.cert))?;
        self.rename_new_key()
    }

    /// Renames the new key to its final name, once its certificate exists.
    fn rename_new_key(&self) -> Result<(), PkiError> {
        fs::rename(&self.new_key, &self.key).map_err(file_error(&self.key))?;
        let dir = self.key.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(dir).and_then(|dir| atomic_file::sync(&dir)).map_err(file_error(dir))
    }
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> PkiError + use<> {
    let path = path.to_owned();
    move |source| PkiError::File { path, source }
}

/// Reads a file as text; `None` if it does not exist.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, PkiError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PkiError::File { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> PemPair {
        let authority = super::super::Authority::create("ca").unwrap();
        let profile = super::super::CertProfile::client("alice", &[], std::time::Duration::from_secs(3600));
        authority.issue(&profile).unwrap()
    }

    #[test]
    fn an_incomplete_pair_is_refused_and_an_interrupted_write_is_completed() {
        let dir = tempfile::tempdir().unwrap();
        let (files, pair) = (PairFiles::new(dir.path(), "x"), pair());
        let at = |suffix: &str| dir.path().join(format!("x.{suffix}"));
        assert!(files.read().unwrap().is_none());
        // Interrupted after each step of a write.
        fs::write(at("key.new"), &pair.key_pem).unwrap();
        assert!(files.read().unwrap().is_none());
        fs::write(at("crt"), &pair.cert_pem).unwrap();
        let read = files.read().unwrap().unwrap();
        assert_eq!((&read.cert_pem, &read.key_pem), (&pair.cert_pem, &pair.key_pem));
        assert!(at("key").exists() && !at("key.new").exists());
        files.write(&pair).unwrap();
        assert!(files.read().unwrap().is_some() && !at("key.new").exists());
        for (lost, present, missing) in [("crt", "key", "crt"), ("key", "crt", "key")] {
            files.write(&pair).unwrap();
            fs::remove_file(at(lost)).unwrap();
            match files.read() {
                Err(PkiError::IncompletePair { present: here, missing: gone }) => {
                    assert_eq!((here, gone), (at(present), at(missing)));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
