//! Reader of the registry's log, shared by all controllers that handle every kind.
//!
//! Each listener receives each change; it filters and enqueues, and never blocks. When changes were missed, all listeners
//! resync from the indexes.

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_registry::{Log, LogEntry, Registry};

/// Receiver of all changes.
pub trait Listener: Send + Sync {
    /// Enqueues all objects that may need work in the current state. The log is already open, so that no change is missed.
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>>;

    /// Enqueues the work that a change requires.
    fn on_event(&self, change: &LogEntry);
}

/// Reader of the log for a set of listeners.
pub struct LogReader {
    listeners: Vec<Arc<dyn Listener>>,
    synced: Signal,
}

impl LogReader {
    #[must_use]
    pub fn new(listeners: Vec<Arc<dyn Listener>>) -> Self {
        Self { listeners, synced: Signal::new("ControllersListen") }
    }

    /// Returns a signal that is set once all listeners have enqueued the initial state.
    #[must_use]
    pub fn synced(&self) -> Signal {
        self.synced.clone()
    }

    /// Reads until `tasks` is cancelled.
    pub async fn run(self, registry: Registry, tasks: TaskSet) {
        tasks.token().run_until_cancelled(self.read(&registry)).await;
    }

    async fn read(&self, registry: &Registry) {
        let mut backoff = Backoff::new(BackoffPolicy::RECONNECT);
        loop {
            match self.resync_all(registry).await {
                Ok(mut log) => {
                    self.synced.signal();
                    backoff.reset();
                    self.dispatch(&mut log).await;
                }
                Err(status) => tracing::warn!(error = %status, "controllers cannot read the store, retrying"),
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    async fn resync_all(&self, registry: &Registry) -> Result<Log, Box<Status>> {
        let log = registry.log()?;
        for listener in &self.listeners {
            listener.resync(registry).await?;
        }
        Ok(log)
    }

    /// Passes changes to the listeners. Ends when changes were missed or the store closed.
    async fn dispatch(&self, log: &mut Log) {
        loop {
            match log.next().await {
                Ok(change) => self.listeners.iter().for_each(|listener| listener.on_event(&change)),
                Err(error) => {
                    return tracing::info!(%error, "controllers lost the change log, restarting from a list");
                }
            }
        }
    }
}
