//! Rewrites all objects of a resource in the current storage version (`storage-version-migrator-controller`).
//!
//! A StorageVersionMigration names the resource; at most one runs for each resource. This controller replaces three of upstream:
//! the steps are decided from the migrations alone. The definition of a custom resource reports the migration, and drops the
//! older stored versions after it.

mod decide;
mod definition;
mod rewrite;

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status, time};
use portico_registry::condition::{self, Condition};
use portico_registry::{Context, ListOptions, Logged, Registry, Stored};

use crate::log::Listener;
use decide::{FAILED, RUNNING, SUCCEEDED, Step};
use rewrite::Rewritten;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "storage-version-migrator-controller";

/// Number of concurrent migrations, as upstream.
const WORKERS: usize = 5;

/// Delay between checks for a resource that is not served; the migration fails if the resource is still missing one minute after
/// the creation of the migration.
const PERIOD: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(60);

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct StorageMigration {
    queue: WorkQueue<GroupResource>,
}

impl StorageMigration {
    /// Creates the controller.
    #[must_use]
    pub fn new(metrics: &QueueMetrics) -> Self {
        Self { queue: WorkQueue::with_metrics(NAME, Policy::CONTROLLER, metrics) }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let registry = registry.clone();
        run_workers(tasks, NAME, WORKERS, self.queue.clone(), move |resource| {
            let migrator = Migrator { registry: registry.clone(), context: Context::system(NAME) };
            async move {
                match migrator.reconcile(&resource).await {
                    // Changed or deleted by another client: an event follows.
                    Err(status) if matches!(status.reason(), Reason::Conflict | Reason::NotFound) => {
                        Ok(Reconciled::Again(Duration::ZERO))
                    }
                    other => other,
                }
            }
        });
    }
}

impl Listener for StorageMigration {
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&migrations(), "", &ListOptions::default()).await?.items;
            all.iter().for_each(|migration| self.queue.add(decide::resource_of(migration.object())));
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        if *change.resource() == migrations() {
            self.queue.add(decide::resource_of(change.stored().object()));
        }
    }
}

struct Migrator {
    registry: Registry,
    context: Context,
}

impl Migrator {
    async fn reconcile(&self, resource: &GroupResource) -> Result<Reconciled, Box<Status>> {
        let all = self.registry.list(&migrations(), "", &ListOptions::default()).await?.items;
        let mut reconciled = Reconciled::Done;
        for (migration, step) in decide::steps(&all, resource) {
            match step {
                Step::CleanUp => self.clean_up(resource, migration).await?,
                Step::Start => self.start(resource, migration).await?,
                Step::Run => reconciled = self.run(resource, migration).await?,
            }
        }
        Ok(reconciled)
    }

    async fn start(&self, resource: &GroupResource, migration: &Stored) -> Result<(), Box<Status>> {
        definition::started(&self.registry, resource, migration.name()).await?;
        self.set_condition(migration, RUNNING, "MigrationRunning", "The migration is running").await.map(drop)
    }

    async fn clean_up(&self, resource: &GroupResource, migration: &Stored) -> Result<(), Box<Status>> {
        definition::ended(&self.registry, resource, condition::is_true(migration.object(), SUCCEEDED))
            .await?;
        let ended = Condition {
            observed_generation: Some(migration.object().generation()).filter(|generation| *generation > 0),
            ..Condition::new(RUNNING, "False", "MigrationCompleted", "Migration completed")
        };
        self.write(migration, |object| {
            condition::set(object, ended, Timestamp::now());
        })
        .await
        .map(drop)
    }

    /// Records the revision up to which objects must be rewritten, rewrites them, and reports the result.
    async fn run(&self, resource: &GroupResource, migration: &Stored) -> Result<Reconciled, Box<Status>> {
        let object = migration.object();
        let verbs = rewrite::VERBS;
        match self.registry.has_verbs(resource, &verbs) {
            Some(true) => {}
            Some(false) => {
                let verbs = verbs.join(" ");
                let message =
                    format!("resource \"{resource}\" does not support discovery operations: [{verbs}]");
                return self.fail(migration, &message).await;
            }
            None if is_young(object, Timestamp::now()) => return Ok(Reconciled::Again(PERIOD)),
            None => return self.fail(migration, "resource does not exist in discovery").await,
        }
        let noted = object.at(&["status", "resourceVersion"]).str().parse::<i64>().ok();
        let (migration, upto) = match noted {
            Some(upto) => (migration.clone(), upto),
            None => self.note(resource, migration).await?,
        };
        match rewrite::all(&self.registry, &self.context, resource, upto).await? {
            Rewritten::Done => {
                self.set_condition(&migration, SUCCEEDED, "StorageVersionMigrationSucceeded", "").await?;
                Ok(Reconciled::Done)
            }
            Rewritten::Refused(status) => {
                let message = format!("migration encountered unhandled error: {}", status.message);
                self.fail(&migration, &message).await
            }
        }
    }

    async fn note(&self, resource: &GroupResource, migration: &Stored) -> Result<(Stored, i64), Box<Status>> {
        let one = ListOptions { limit: 1, ..ListOptions::default() };
        let revision = self.registry.list(resource, "", &one).await?.revision;
        let note = |object: &mut Object| object.set(&["status", "resourceVersion"], revision.to_string());
        Ok((self.write(migration, note).await?, revision))
    }

    async fn fail(&self, migration: &Stored, message: &str) -> Result<Reconciled, Box<Status>> {
        self.set_condition(migration, FAILED, "StorageVersionMigrationFailed", message).await?;
        Ok(Reconciled::Done)
    }

    async fn set_condition(
        &self,
        migration: &Stored,
        kind: &str,
        reason: &str,
        message: &str,
    ) -> Result<Stored, Box<Status>> {
        let reported = Condition::new(kind, "True", reason, message);
        self.write(migration, |object| {
            condition::set(object, reported, Timestamp::now());
        })
        .await
    }

    async fn write(
        &self,
        migration: &Stored,
        change: impl FnOnce(&mut Object),
    ) -> Result<Stored, Box<Status>> {
        let mut object = migration.object().clone();
        change(&mut object);
        Ok(self.registry.update_status(&self.context, &migrations(), object).await?.stored)
    }
}

/// Returns true if the resource may still appear: definition and migration are often applied together.
fn is_young(migration: &Object, now: Timestamp) -> bool {
    let created = migration.creation_timestamp().and_then(time::parse);
    created.is_some_and(|created| now.duration_since(created).unsigned_abs() < PATIENCE)
}

fn migrations() -> GroupResource {
    GroupResource::new("storagemigration.k8s.io", "storageversionmigrations")
}
