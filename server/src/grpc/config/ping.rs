//! Signs of life for facades that know several control services: whether this one is to be used, and how far it has come.

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

/// How long an answer waits for the revision that is asked for.
const CATCH_UP: Duration = Duration::from_secs(1);
/// How often the store is asked whether it can be read, at most, however many facades ask.
const LOOK: Duration = Duration::from_secs(1);
/// How long that may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Clone)]
pub(crate) struct Pings {
    store: Arc<dyn Store>,
    ready: Signal,
    tasks: TaskSet,
    looked: Arc<Mutex<Looked>>,
}

/// Whether the store could be read when it was looked at last.
struct Looked {
    at: Option<Instant>,
    under_way: bool,
    readable: bool,
}

impl Pings {
    /// Of this store; `ready` is given once all checks have passed.
    pub(crate) fn new(store: Arc<dyn Store>, ready: Signal, tasks: TaskSet) -> Self {
        let looked = Looked { at: None, under_way: false, readable: true };
        Self { store, ready, tasks, looked: Arc::new(Mutex::new(looked)) }
    }

    /// The answer, once reads here show this revision or it has been waited for in vain.
    pub(super) async fn answer(
        &self,
        sources: &Sources,
        facades: &Facades,
        at_least: i64,
    ) -> pb::PingResponse {
        if self.store.revision() < at_least {
            // In vain: the answer shows how far it is.
            let _behind = timeout(CATCH_UP, self.store.wait_for(at_least)).await;
        }
        pb::PingResponse {
            version: Some(pb::Version::from(&sources.version(self.store.revision()))),
            serving: self.ready.is_signaled() && self.is_readable(),
            draining: facades.draining().is_signaled(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// What was found when the store was last asked; asks again, behind the answer, when that is a while ago.
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
