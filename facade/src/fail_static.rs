//! Fail-static: saves the configuration and its documents to disk, so that a facade can start without its control service.
//!
//! One file, replaced as a whole, contains the time at which it was known to be current; a small file next to it, the mark,
//! advances that time. File system times are not used: a restored copy must not look new. Objects, Secrets and keys are never
//! saved. Does not depend on the meaning of entries.

mod file;

pub use file::{Mark, SavedState, StateError};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_kit::atomic_file::{self, PRIVATE_MODE};
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::tasks::blocking;

use crate::configuration::Configuration;
use crate::control;
use crate::documents::Documents;
use crate::freshness::Freshness;

/// Folder within the data folder.
pub const FOLDER: &str = "facade-state";
const FILE: &str = "state";
const MARK_FILE: &str = "current";
/// Maximum time by which a state may be dated in the future, because clocks differ.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(300);
/// Time within which changes are written together.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// Interval between marks of a live configuration that does not change.
const MARK_INTERVAL: Duration = Duration::from_secs(60);
/// Backoff between attempts to write a state after a failure.
const RETRY: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), MARK_INTERVAL, 2.0, 0.5);

/// Saves and loads the configuration.
pub struct FailStatic {
    path: PathBuf,
    store_id: Option<String>,
}

impl FailStatic {
    /// Stores the state below this data folder. If `store_id` is known, states of other stores are refused.
    #[must_use]
    pub fn new(data_dir: &Path, store_id: Option<String>) -> Self {
        Self { path: data_dir.join(FOLDER).join(FILE), store_id }
    }

    /// Activates the saved state, if it exists and is valid.
    pub fn load(&self, configuration: &Configuration, documents: &Documents, freshness: &Freshness) {
        match self.read() {
            Ok(None) => tracing::debug!("no configuration is saved"),
            Ok(Some((state, at))) => self.restore(state, at, configuration, documents, freshness),
            Err(error) => {
                let path = self.path.display();
                tracing::error!(%path, %error, "cannot use the saved configuration, ignoring the file");
            }
        }
    }

    fn read(&self) -> Result<Option<(SavedState, SystemTime)>, StateError> {
        let bytes = match std::fs::read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let state = SavedState::decode(&bytes)?;
        if self.store_id.as_ref().is_some_and(|expected| *expected != state.version.store_id) {
            return Err(StateError::OtherStore);
        }
        let at = UNIX_EPOCH + seconds(self.current_at(&state));
        if at > SystemTime::now() + MAX_CLOCK_SKEW {
            return Err(StateError::Future);
        }
        Ok(Some((state, at)))
    }

    /// Time at which the state was known to be current, from the mark if it is readable.
    fn current_at(&self, state: &SavedState) -> i64 {
        let mark = std::fs::read(self.mark_path()).ok();
        let mark = mark.and_then(|bytes| serde_json::from_slice::<Mark>(&bytes).ok());
        mark.map_or(state.current_at, |mark| mark.current_at(state))
    }

    fn mark_path(&self) -> PathBuf {
        self.path.with_file_name(MARK_FILE)
    }

    fn restore(
        &self,
        state: SavedState,
        at: SystemTime,
        configuration: &Configuration,
        documents: &Documents,
        freshness: &Freshness,
    ) {
        let entries = match control::decode(&state.entries) {
            Ok(entries) => entries,
            Err(error) => {
                return tracing::error!(%error, "cannot decode the state on disk, ignoring the file");
            }
        };
        for (hash, bytes) in state.documents {
            if let Err(error) = documents.insert(&hash, bytes) {
                tracing::warn!(%error, "document on disk ignored");
            }
        }
        let revision = state.version.revision;
        configuration.replace(state.version, entries);
        freshness.set_loaded(at);
        let age_seconds = freshness.stale_for().unwrap_or_default().as_secs();
        tracing::info!(revision, age_seconds, "serving the state on disk until the control service responds");
    }

    /// Saves each change, and marks the saved state as current while it is active. After a failed write, which is logged and
    /// retried, nothing is marked until a write succeeds, so that the old state on disk does not look current.
    pub async fn save_until_canceled(
        self,
        configuration: Arc<Configuration>,
        documents: Arc<Documents>,
        freshness: Arc<Freshness>,
    ) {
        let mut changed = configuration.subscribe();
        let this = Arc::new(self);
        let mut retries = Backoff::new(RETRY);
        // Mark of the content on disk; `None` if other content is active.
        let mut saved_mark: Option<Mark> = None;
        loop {
            let wait = if saved_mark.is_some() { MARK_INTERVAL } else { retries.next_wait() };
            tokio::select! {
                change = changed.changed() => {
                    if change.is_err() {
                        return;
                    }
                    tokio::time::sleep(DEBOUNCE).await;
                }
                () = tokio::time::sleep(wait) => {
                    if let Some(mark) = &saved_mark && !changed.has_changed().unwrap_or(true) {
                        this.write_mark(&freshness, mark).await;
                        continue;
                    }
                }
            }
            changed.borrow_and_update();
            saved_mark = this.save(&configuration, &documents, &freshness).await;
            if saved_mark.is_some() {
                retries.reset();
            }
        }
    }

    /// Saves the active state if it came from the stream. Returns its mark, or `None` if it was not saved.
    async fn save(
        self: &Arc<Self>,
        configuration: &Configuration,
        documents: &Documents,
        freshness: &Freshness,
    ) -> Option<Mark> {
        if freshness.stale_for().is_some() {
            // A state that was loaded from disk is saved already, with its own age.
            return None;
        }
        let (version, entries) = configuration.snapshot()?;
        let current_at = confirmed_at(freshness);
        let mark = Mark {
            store_id: version.store_id.clone(),
            epoch: version.epoch.clone(),
            written_at: current_at,
            current_at,
        };
        let (this, documents) = (self.clone(), documents.all());
        let write = blocking(move || {
            let entries = control::encode(&entries).into();
            let state = SavedState { version, current_at, entries, documents };
            if let Some(folder) = this.path.parent() {
                atomic_file::create_private_dir(folder)?;
            }
            atomic_file::write(&this.path, &state.encode(), PRIVATE_MODE)
        });
        match write.await {
            Some(Ok(())) => return Some(mark),
            Some(Err(error)) => {
                let path = self.path.display();
                tracing::error!(%path, %error, "cannot write the state to disk, retrying");
            }
            None => tracing::error!("writing the state to disk was interrupted"),
        }
        None
    }

    async fn write_mark(self: &Arc<Self>, freshness: &Freshness, saved: &Mark) {
        if freshness.stale_for().is_some() || !freshness.has_configuration() {
            return;
        }
        let mark = Mark { current_at: confirmed_at(freshness), ..saved.clone() };
        let this = self.clone();
        let write = blocking(move || {
            let bytes = serde_json::to_vec(&mark)?;
            atomic_file::write(&this.mark_path(), &bytes, PRIVATE_MODE)
        });
        if let Some(Err(error)) = write.await {
            tracing::warn!(%error, "cannot mark the state on disk as current");
        }
    }
}

/// Time of the last confirmation of the active configuration, in Unix seconds.
fn confirmed_at(freshness: &Freshness) -> i64 {
    let age = freshness.age().unwrap_or_default();
    let at = SystemTime::now().checked_sub(age).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    at.map_or(0, |at| i64::try_from(at.as_secs()).unwrap_or(i64::MAX))
}

fn seconds(unix: i64) -> Duration {
    // Far beyond any clock, and small enough to be added to a `SystemTime`.
    const MAX_SECONDS: u64 = 1 << 40;
    Duration::from_secs(u64::try_from(unix).unwrap_or(0).min(MAX_SECONDS))
}

#[cfg(test)]
mod tests;
