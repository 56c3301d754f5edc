//! Fail-static: the configuration and its documents on disk, so that a facade starts without its control service.
//!
//! One file, replaced whole; its modification time says when the configuration was last known to be current. Never
//! objects, Secrets or keys. It must not know what entries mean.

mod file;

pub use file::{SavedState, StateError};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use portico_kit::atomic_file::{self, PRIVATE};
use portico_kit::tasks::blocking;

use crate::configuration::Configuration;
use crate::control;
use crate::documents::Documents;
use crate::freshness::Freshness;

/// The folder within the data folder.
pub const FOLDER: &str = "facade-state";
const FILE: &str = "state";
/// Changes within this time are written together.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// How often a live configuration that does not change is marked as current.
const MARK: Duration = Duration::from_secs(60);

/// See the module.
pub struct FailStatic {
    path: PathBuf,
    store_id: Option<String>,
}

impl FailStatic {
    /// Keeps the state below this data folder; states of other stores than `store_id`, where it is known, are refused.
    #[must_use]
    pub fn new(data_dir: &Path, store_id: Option<String>) -> Self {
        Self { path: data_dir.join(FOLDER).join(FILE), store_id }
    }

    /// Puts the state on disk in force, when there is one and it can be used.
    pub fn load(&self, configuration: &Configuration, documents: &Documents, freshness: &Freshness) {
        match self.read() {
            Ok(None) => tracing::debug!("no state of an earlier run"),
            Ok(Some((state, at))) => self.restore(state, at, configuration, documents, freshness),
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "the state on disk is not used")
            }
        }
    }

    fn read(&self) -> Result<Option<(SavedState, SystemTime)>, StateError> {
        let bytes = match std::fs::read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let at = std::fs::metadata(&self.path)?.modified()?;
        let state = SavedState::decode(&bytes)?;
        match &self.store_id {
            Some(own) if *own != state.version.store_id => Err(StateError::OtherStore),
            _ => Ok(Some((state, at))),
        }
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
            Err(error) => return tracing::error!(%error, "the state on disk is not used"),
        };
        for (hash, bytes) in state.documents {
            if let Err(error) = documents.insert(&hash, bytes) {
                tracing::warn!(%error, "a document on disk is not used");
            }
        }
        let revision = state.version.revision;
        configuration.replace(state.version, entries);
        freshness.loaded(at);
        let age = freshness.stale_for();
        tracing::info!(revision, ?age, "serving from the state on disk until the control service answers");
    }

    /// Writes changes as they come, for ever. Errors are logged and tried again with the next change.
    pub async fn keep(
        self,
        configuration: Arc<Configuration>,
        documents: Arc<Documents>,
        freshness: Arc<Freshness>,
    ) {
        let mut changed = configuration.subscribe();
        let this = Arc::new(self);
        loop {
            tokio::select! {
                change = changed.changed() => {
                    if change.is_err() {
                        return;
                    }
                    tokio::time::sleep(DEBOUNCE).await;
                    changed.borrow_and_update();
                    this.save(&configuration, &documents, &freshness).await;
                }
                () = tokio::time::sleep(MARK) => this.mark(&freshness).await,
            }
        }
    }

    /// Writes what is in force now, if it came from the stream.
    pub async fn save(
        self: &Arc<Self>,
        configuration: &Configuration,
        documents: &Documents,
        freshness: &Freshness,
    ) {
        if freshness.stale_for().is_some() {
            // What came from the disk is there already, with its own age.
            return;
        }
        let Some((version, entries)) = configuration.snapshot() else { return };
        let state =
            SavedState { version, entries: control::encode(&entries).into(), documents: documents.all() };
        let this = self.clone();
        let written = blocking(move || {
            if let Some(folder) = this.path.parent() {
                atomic_file::private_dir(folder)?;
            }
            atomic_file::write(&this.path, &state.encode(), PRIVATE)
        });
        match written.await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::error!(path = %self.path.display(), %error, "the state was not written");
            }
            None => tracing::error!("writing the state was interrupted"),
        }
    }

    async fn mark(self: &Arc<Self>, freshness: &Freshness) {
        if freshness.stale_for().is_some() || !freshness.known() {
            return;
        }
        let this = self.clone();
        let marked = blocking(move || {
            std::fs::File::options().write(true).open(&this.path)?.set_modified(SystemTime::now())
        });
        if let Some(Err(error)) = marked.await {
            tracing::warn!(%error, "the state could not be marked as current");
        }
    }
}
