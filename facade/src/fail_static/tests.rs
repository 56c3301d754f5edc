//! Saved state and mark while writes fail.

use std::fs;

use portico_kit::health::Health;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_proto::convert::{Entry, Payload, PayloadKind, Version};

use super::*;
use crate::route_table::RouteTable;

/// A live configuration that is saved to a temporary folder, with paused time.
struct SavedFacade {
    dir: tempfile::TempDir,
    configuration: Arc<Configuration>,
    tasks: TaskSet,
}

impl SavedFacade {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let synced = Signal::new("synced");
        let configuration =
            Configuration::new(RouteTable::default(), Vec::new(), Health::new(Duration::ZERO), synced);
        let (configuration, freshness) = (Arc::new(configuration), Freshness::new(Duration::MAX));
        freshness.confirm();
        freshness.set_live();
        let documents = Arc::new(Documents::new(true));
        let state = FailStatic::new(dir.path(), None);
        let tasks = TaskSet::new();
        let keeping = state.save_until_canceled(configuration.clone(), documents, Arc::new(freshness));
        tasks.spawn_until_cancelled("fail-static", keeping);
        Self { dir, configuration, tasks }
    }

    fn change(&self, revision: i64) {
        let version = Version { store_id: "s".to_owned(), epoch: "e".to_owned(), revision };
        let payload = Some(Payload::Setting(revision.to_string()));
        let entry = Entry { kind: PayloadKind::Setting, key: "changes".to_owned(), revision, payload };
        self.configuration.replace(version, vec![entry]);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(FOLDER).join(name)
    }

    /// Revision of the saved state, if there is one.
    fn revision(&self) -> Option<i64> {
        let bytes = fs::read(self.path(FILE)).ok()?;
        Some(SavedState::decode(&bytes).unwrap().version.revision)
    }

    async fn wait_until_saved(&self, revision: i64) {
        while self.revision() != Some(revision) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

impl Drop for SavedFacade {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_could_not_be_replaced_is_not_marked_as_current_and_written_later() {
    let saved = SavedFacade::start();
    saved.change(1);
    saved.wait_until_saved(1).await;
    tokio::time::sleep(MARK_INTERVAL * 2).await;
    assert!(saved.path(MARK_FILE).exists(), "a state in force is marked");

    fs::remove_file(saved.path(MARK_FILE)).unwrap();
    // A file cannot be renamed to the name of a folder.
    fs::rename(saved.path(FILE), saved.path("old")).unwrap();
    fs::create_dir(saved.path(FILE)).unwrap();
    saved.change(2);
    tokio::time::sleep(MARK_INTERVAL * 5).await;
    assert!(!saved.path(MARK_FILE).exists(), "other content is in force");

    fs::remove_dir(saved.path(FILE)).unwrap();
    fs::rename(saved.path("old"), saved.path(FILE)).unwrap();
    saved.wait_until_saved(2).await;
    tokio::time::sleep(MARK_INTERVAL * 2).await;
    assert!(saved.path(MARK_FILE).exists(), "it is marked from then on");
}
