//! Files that are reloaded when they change: certificate pairs, CA bundles, token files.
//!
//! A set of files is polled, and reloaded at once on [`FileWatch::reload`] (SIGHUP). A set that cannot be parsed,
//! such as a pair of which only one half has been replaced yet, is reported and retried soon; the previous value stays in use.
//! Does not depend on the format of the files: the caller supplies the parser.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use portico_gostd::os::error_text;

use crate::backoff::{Backoff, BackoffPolicy};
use crate::config_file;
use crate::tasks::{TaskSet, blocking};
use crate::tls::{CertPair, TlsError};

/// Interval at which files are checked for changes.
pub const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Backoff after a set of files that could not be loaded.
const RETRY_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(200), POLL_INTERVAL, 2.0, 0.0);

/// Error of loading a set of files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read.
    #[error("{}: {reason}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        reason: String,
    },
    /// A file is empty.
    #[error("{}: the file is empty", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The parser rejected the set of files.
    #[error("{files}: {reason}")]
    Invalid {
        /// Paths of all files of the set, separated by commas.
        files: String,
        /// Error of the parser.
        reason: String,
    },
}

type Parse<T> = dyn Fn(&[Vec<u8>]) -> Result<T, String> + Send + Sync;

/// Set of files and the value parsed from them. Clones share it.
pub struct FileWatch<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    files: Vec<PathBuf>,
    parse: Box<Parse<T>>,
    value: watch::Sender<Arc<T>>,
    raw: Mutex<Vec<Vec<u8>>>,
}

impl<T> Clone for FileWatch<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<T: Send + Sync + 'static> FileWatch<T> {
    /// Reads and parses the files in the given order. Callers treat an error here as fatal.
    pub fn new<E: Display>(
        files: Vec<PathBuf>,
        parse: impl Fn(&[Vec<u8>]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, FileError> {
        let raw = read_all(&files)?;
        let parse: Box<Parse<T>> = Box::new(move |raw| parse(raw).map_err(|error| error.to_string()));
        let value = parse(&raw).map_err(|reason| invalid(&files, reason))?;
        let (value, _) = watch::channel(Arc::new(value));
        Ok(Self { inner: Arc::new(Inner { files, parse, value, raw: Mutex::new(raw) }) })
    }

    /// Returns the current value.
    pub fn current(&self) -> Arc<T> {
        self.inner.value.borrow().clone()
    }

    /// Returns a receiver of later changes; several quick changes may arrive as one.
    pub fn subscribe(&self) -> watch::Receiver<Arc<T>> {
        self.inner.value.subscribe()
    }

    /// Reloads the files now. Returns `true` if the value was replaced, `false` if the content is unchanged. On an
    /// error the previous value stays in use.
    pub async fn reload(&self) -> Result<bool, FileError> {
        let this = self.clone();
        // File systems can hang, so this must not run on a thread that serves requests.
        let outcome = blocking(move || this.reload_blocking()).await;
        outcome.unwrap_or_else(|| Err(invalid(&self.inner.files, "reading was interrupted".to_owned())))
    }

    /// Spawns the task that polls the files. It ends with `tasks`.
    pub fn watch(&self, tasks: &TaskSet, name: &'static str) {
        let this = self.clone();
        tasks.spawn_until_cancelled(name, async move { this.poll(name).await });
    }

    async fn poll(self, name: &'static str) {
        let mut retry = Backoff::new(RETRY_BACKOFF);
        let mut last_error = None;
        let mut wait = POLL_INTERVAL;
        loop {
            tokio::time::sleep(wait).await;
            match self.reload().await {
                Ok(changed) => {
                    if changed || last_error.is_some() {
                        tracing::info!(watch = name, files = %self.names(), "files reloaded");
                    }
                    (last_error, wait) = (None, POLL_INTERVAL);
                    retry.reset();
                }
                Err(error) => {
                    if last_error.as_ref() != Some(&error) {
                        tracing::error!(watch = name, %error, "cannot reload changed files, using their previous content");
                    }
                    (last_error, wait) = (Some(error), retry.next_wait());
                }
            }
        }
    }

    fn reload_blocking(&self) -> Result<bool, FileError> {
        let fresh = read_all(&self.inner.files)?;
        // Locked while parsing, so that of two reloads the later one wins.
        let mut raw = self.inner.raw.lock();
        if *raw == fresh {
            return Ok(false);
        }
        let value = (self.inner.parse)(&fresh).map_err(|reason| invalid(&self.inner.files, reason))?;
        *raw = fresh;
        self.inner.value.send_replace(Arc::new(value));
        Ok(true)
    }

    fn names(&self) -> String {
        names(&self.inner.files)
    }
}

impl FileWatch<CertPair> {
    /// Watches a certificate file and its key file; `label` names the pair in errors.
    pub fn cert_pair(label: &str, cert: PathBuf, key: PathBuf) -> Result<Self, FileError> {
        let label = label.to_owned();
        Self::new(vec![cert, key], move |raw: &[Vec<u8>]| match raw {
            [cert, key] => CertPair::from_pem(&label, cert, key),
            _ => Err(TlsError::Empty { label: label.clone(), missing: "certificate" }),
        })
    }
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, FileError> {
    let read = |path: &PathBuf| match config_file::read(path) {
        Ok(bytes) if bytes.is_empty() => Err(FileError::Empty { path: path.clone() }),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(FileError::Read { path: path.clone(), reason: error_text(&error) }),
    };
    files.iter().map(read).collect()
}

fn invalid(files: &[PathBuf], reason: String) -> FileError {
    FileError::Invalid { files: names(files), reason }
}

fn names(files: &[PathBuf]) -> String {
    files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Authority, CertProfile, PemPair};

    fn pair(authority: &Authority, name: &str) -> PemPair {
        authority.issue(&CertProfile::client(name, &[], Duration::from_secs(3600))).unwrap()
    }

    #[tokio::test]
    async fn half_a_new_pair_is_not_used_and_the_second_half_completes_it() {
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
        let authority = Authority::create("test-ca").unwrap();
        let (old, new) = (pair(&authority, "old"), pair(&authority, "new"));
        std::fs::write(&cert, &old.cert_pem).unwrap();
        std::fs::write(&key, &old.key_pem).unwrap();
        let watch = FileWatch::cert_pair("proxy-client", cert.clone(), key.clone()).unwrap();
        let mut changes = watch.subscribe();
        assert_eq!(watch.reload().await, Ok(false));

        std::fs::write(&cert, &new.cert_pem).unwrap();
        let error = watch.reload().await.unwrap_err().to_string();
        assert!(error.ends_with("proxy-client: the private key does not match the certificate"), "{error}");
        assert_eq!(watch.current().info().common_name, "old");
        assert!(!changes.has_changed().unwrap());

        std::fs::write(&key, &new.key_pem).unwrap();
        assert_eq!(watch.reload().await, Ok(true));
        changes.changed().await.unwrap();
        assert_eq!(changes.borrow().info().common_name, "new");
    }

    #[tokio::test]
    async fn a_missing_or_empty_file_is_fatal_at_first_and_harmless_later() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tokens.csv");
        let lines = |raw: &[Vec<u8>]| Ok::<usize, String>(raw[0].split(|byte| *byte == b'\n').count());
        let error = FileWatch::new(vec![file.clone()], lines).err().unwrap();
        assert!(error.to_string().ends_with("tokens.csv: no such file or directory"), "{error}");
        std::fs::write(&file, "a\nb").unwrap();
        let watch = FileWatch::new(vec![file.clone()], lines).unwrap();
        std::fs::write(&file, "").unwrap();
        assert_eq!(watch.reload().await, Err(FileError::Empty { path: file }));
        assert_eq!(*watch.current(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_poll_sees_a_change_and_ends_with_its_tasks() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.crt");
        std::fs::write(&file, "one").unwrap();
        let watch =
            FileWatch::new(vec![file.clone()], |raw: &[Vec<u8>]| String::from_utf8(raw[0].clone())).unwrap();
        let tasks = TaskSet::new();
        let mut changes = watch.subscribe();
        watch.watch(&tasks, "client-ca");
        std::fs::write(&file, "two").unwrap();
        changes.changed().await.unwrap();
        assert_eq!(**changes.borrow(), "two");
        assert!(tasks.shutdown(Duration::from_secs(5)).await.is_empty());
    }
}
