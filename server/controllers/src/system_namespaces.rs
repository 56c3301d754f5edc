//! Namespaces that always exist (hook `start-system-namespaces-controller`).

use std::time::Duration;

use futures::StreamExt;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersionKind, Object, Reason, Status};
use portico_registry::{Change, Context, CreateOptions, Registry, StoredObject};
use tokio::time::timeout;

use crate::write_result::ignore_reasons;

/// Names of the system namespaces, in upstream's order.
pub const SYSTEM_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "default"];

/// Interval between checks. Deletions trigger a check at once.
const PERIOD: Duration = Duration::from_secs(60);

/// Controller of the system namespaces.
#[derive(Clone)]
pub struct SystemNamespaces {
    created: Signal,
}

impl Default for SystemNamespaces {
    fn default() -> Self {
        Self { created: Signal::new("SystemNamespacesCreated") }
    }
}

/// Returns the system namespaces that are missing in a list. Pure.
pub fn missing<'a>(present: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    let present: Vec<&str> = present.collect();
    SYSTEM_NAMESPACES.into_iter().filter(|name| !present.contains(name)).collect()
}

impl SystemNamespaces {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a signal that is set once all of them exist.
    #[must_use]
    pub fn created(&self) -> Signal {
        self.created.clone()
    }

    /// Recreates missing namespaces until `tasks` is cancelled.
    pub async fn run(self, registry: Registry, tasks: TaskSet) {
        tasks.token().run_until_cancelled(self.reconcile_loop(&registry)).await;
    }

    async fn reconcile_loop(&self, registry: &Registry) {
        let mut backoff = Backoff::new(BackoffPolicy::RECONNECT);
        loop {
            if let Err(status) = self.follow(registry, &mut backoff).await {
                tracing::warn!(error = %status, "cannot create system namespaces, retrying");
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    /// Follows namespaces until the registry returns an error or closes.
    async fn follow(&self, registry: &Registry, backoff: &mut Backoff) -> Result<(), Box<Status>> {
        let mut feed = registry.follow(&resource()).await?;
        create(registry, &missing(feed.initial.iter().map(StoredObject::name))).await?;
        self.created.signal();
        backoff.reset();
        loop {
            match timeout(PERIOD, feed.changes.next()).await {
                Ok(None) => return Ok(()),
                // An existing namespace needs nothing; a terminating one is recreated after its deletion.
                Ok(Some(Change::Put(_))) => {}
                Ok(Some(Change::Deleted(stored))) => {
                    let deleted = SYSTEM_NAMESPACES.into_iter().find(|name| stored.name() == *name);
                    create(registry, deleted.as_slice()).await?;
                }
                Ok(Some(Change::Relisted(..))) | Err(_) => {
                    create(registry, &missing_in_store(registry).await?).await?
                }
            }
        }
    }
}

fn resource() -> GroupResource {
    GroupResource::new("", "namespaces")
}

async fn missing_in_store(registry: &Registry) -> Result<Vec<&'static str>, Box<Status>> {
    let mut absent = Vec::new();
    for name in SYSTEM_NAMESPACES {
        match registry.get(&resource(), "", name).await {
            Ok(_) => {}
            Err(status) if status.reason() == Reason::NotFound => absent.push(name),
            Err(status) => return Err(status),
        }
    }
    Ok(absent)
}

/// Creates namespaces concurrently, so that the writes share a commit.
async fn create(registry: &Registry, names: &[&'static str]) -> Result<(), Box<Status>> {
    let context = Context::system("system:apiserver");
    let kind =
        GroupVersionKind { group: String::new(), version: "v1".to_owned(), kind: "Namespace".to_owned() };
    let writes = names.iter().map(|name| {
        let mut object = Object::new(&kind);
        object.set(&["metadata", "name"], name);
        let context = &context;
        async move { registry.create(context, &resource(), object, &CreateOptions::default()).await }
    });
    for written in futures::future::join_all(writes).await {
        ignore_reasons(written, &[Reason::AlreadyExists])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_namespaces_are_returned_in_order() {
        assert_eq!(
            missing(["default", "mine"].into_iter()),
            ["kube-system", "kube-public", "kube-node-lease"]
        );
        assert!(missing(SYSTEM_NAMESPACES.into_iter()).is_empty());
    }
}
