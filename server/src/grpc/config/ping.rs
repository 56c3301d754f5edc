//! Pings of facades that know several control services: whether this one can be used, and which revision it has.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_proto::config as pb;
use portico_store::Store;
use tokio::time::{Instant, timeout};

use super::facades::Facades;
use super::sources::StreamSources;

/// Maximum time that an answer waits for the requested revision.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum interval between checks that the store is readable, independent of the number of facades.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of a check that the store is readable.
const POLL_TIMEOUT: Duration = Duration::from_secs(2);

/// Responder to pings.
#[derive(Clone)]
pub(crate) struct PingResponder {
    store: Arc<dyn Store>,
    ready: Signal,
    tasks: TaskSet,
    read_check: Arc<Mutex<ReadCheck>>,
}

/// Result of the last check that the store is readable.
struct ReadCheck {
    at: Option<Instant>,
    is_running: bool,
    is_readable: bool,
}

impl PingResponder {
    /// Creates a responder for a store; `ready` is signaled once all checks have passed.
    pub(crate) fn new(store: Arc<dyn Store>, ready: Signal, tasks: TaskSet) -> Self {
        let read_check = ReadCheck { at: None, is_running: false, is_readable: true };
        Self { store, ready, tasks, read_check: Arc::new(Mutex::new(read_check)) }
    }

    /// Answers once local reads include a revision, or after a timeout.
    pub(super) async fn answer(
        &self,
        sources: &StreamSources,
        facades: &Facades,
        at_least: i64,
    ) -> pb::PingResponse {
        if self.store.revision() < at_least {
            // After a timeout, the answer contains the current revision.
            let _behind = timeout(CATCH_UP_TIMEOUT, self.store.wait_for_revision(at_least)).await;
        }
        pb::PingResponse {
            version: Some(pb::Version::from(&sources.version(self.store.revision()))),
            serving: self.ready.is_signaled() && self.check_readable(),
            draining: facades.draining().is_signaled(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Returns the result of the last check; starts another check in the background if it is too old.
    fn check_readable(&self) -> bool {
        let mut read_check = self.read_check.lock();
        if !read_check.is_running && read_check.at.is_none_or(|at| at.elapsed() >= POLL_INTERVAL) {
            read_check.is_running = true;
            let (store, read_check) = (Arc::clone(&self.store), Arc::clone(&self.read_check));
            self.tasks.spawn_until_cancelled("store-readable", async move {
                let revision = timeout(POLL_TIMEOUT, store.latest_revision()).await;
                let is_readable = matches!(revision, Ok(Ok(_)));
                *read_check.lock() = ReadCheck { at: Some(Instant::now()), is_running: false, is_readable };
            });
        }
        read_check.is_readable
    }
}
