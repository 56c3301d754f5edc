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
use super::sources::Sources;

/// Maximum time that an answer waits for the requested revision.
const CATCH_UP: Duration = Duration::from_secs(1);
/// Minimum interval between checks that the store is readable, independent of the number of facades.
const LOOK: Duration = Duration::from_secs(1);
/// Timeout of a check that the store is readable.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// Responder to pings.
#[derive(Clone)]
pub(crate) struct Pings {
    store: Arc<dyn Store>,
    ready: Signal,
    tasks: TaskSet,
    looked: Arc<Mutex<Looked>>,
}

/// Result of the last check that the store is readable.
struct Looked {
    at: Option<Instant>,
    under_way: bool,
    readable: bool,
}

impl Pings {
    /// Creates a responder for a store; `ready` is signaled once all checks have passed.
    pub(crate) fn new(store: Arc<dyn Store>, ready: Signal, tasks: TaskSet) -> Self {
        let looked = Looked { at: None, under_way: false, readable: true };
        Self { store, ready, tasks, looked: Arc::new(Mutex::new(looked)) }
    }

    /// Answers once local reads include a revision, or after a timeout.
    pub(super) async fn answer(
        &self,
        sources: &Sources,
        facades: &Facades,
        at_least: i64,
    ) -> pb::PingResponse {
        if self.store.revision() < at_least {
            // After a timeout, the answer contains the current revision.
            let _behind = timeout(CATCH_UP, self.store.wait_for(at_least)).await;
        }
        pb::PingResponse {
            version: Some(pb::Version::from(&sources.version(self.store.revision()))),
            serving: self.ready.is_signaled() && self.is_readable(),
            draining: facades.draining().is_signaled(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Returns the result of the last check; starts another check in the background if it is too old.
    fn is_readable(&self) -> bool {
        let mut looked = self.looked.lock();
        if !looked.under_way && looked.at.is_none_or(|at| at.elapsed() >= LOOK) {
            looked.under_way = true;
            let (store, looked) = (Arc::clone(&self.store), Arc::clone(&self.looked));
            self.tasks.spawn_until_cancelled("store-readable", async move {
                let answered = timeout(LOOK_TIMEOUT, store.latest_revision()).await;
                let readable = matches!(answered, Ok(Ok(_)));
                *looked.lock() = Looked { at: Some(Instant::now()), under_way: false, readable };
            });
        }
        looked.readable
    }
}
