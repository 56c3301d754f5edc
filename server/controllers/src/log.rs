//! One reader of the registry's log for all controllers that get every kind.
//!
//! It hands each change to each listener; a listener looks and queues, and never waits. When something was missed, all of
//! them begin again from the indexes.

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::{Backoff, Policy};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_registry::{Log, Logged, Registry};

/// Is called with every change.
pub trait Listener: Send + Sync {
    /// Queues whatever there may be to do in the present state. The log has begun already: nothing falls between.
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>>;

    /// Queues what a change asks for.
    fn on_event(&self, change: &Logged);
}

/// The reader.
pub struct Listening {
    listeners: Vec<Arc<dyn Listener>>,
    begun: Signal,
}

impl Listening {
    /// A reader for these.
    #[must_use]
    pub fn new(listeners: Vec<Arc<dyn Listener>>) -> Self {
        Self { listeners, begun: Signal::new("ControllersListen") }
    }

    /// Given once all listeners have begun.
    #[must_use]
    pub fn begun(&self) -> Signal {
        self.begun.clone()
    }

    /// Reads until `tasks` is cancelled.
    pub async fn run(self, registry: Registry, tasks: TaskSet) {
        tasks.token().run_until_cancelled(self.read(&registry)).await;
    }

    async fn read(&self, registry: &Registry) {
        let mut backoff = Backoff::new(Policy::RECONNECT);
        loop {
            match self.begin(registry).await {
                Ok(mut log) => {
                    self.begun.signal();
                    backoff.reset();
                    self.dispatch(&mut log).await;
                }
                Err(status) => tracing::warn!(error = %status, "controllers cannot read the store, retrying"),
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    async fn begin(&self, registry: &Registry) -> Result<Log, Box<Status>> {
        let log = registry.log()?;
        for listener in &self.listeners {
            listener.begin(registry).await?;
        }
        Ok(log)
    }

    /// Passes changes to the listeners. Ends when something was missed, or the store closed.
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
