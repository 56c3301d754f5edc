//! Rewrites all objects of a resource in the current storage version (`storage-version-migrator-controller`).
//!
//! A StorageVersionMigration names the resource; at most one runs for each resource. This controller replaces three of upstream:
//! the steps are decided from the migrations alone. The definition of a custom resource reports the migration, and drops the
//! older stored versions after it.

mod decision;
mod definition;
mod rewrite;

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status, time};
use portico_registry::condition::{self, Condition};
use portico_registry::{Context, ListOptions, LogEntry, Registry, StoredObject};

use crate::log::Listener;
use decision::{FAILED, MigrationStep, RUNNING, SUCCEEDED};
use rewrite::RewriteOutcome;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "storage-version-migrator-controller";

/// Number of concurrent migrations, as upstream.
const WORKERS: usize = 5;

/// Delay between checks for a resource that is not served; the migration fails if the resource is still missing one minute after
/// the creation of the migration.
const RETRY_DELAY: Duration = Duration::from_secs(5);
const RESOURCE_WAIT: Duration = Duration::from_secs(60);

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct StorageMigration {
    queue: WorkQueue<GroupResource>,
}

impl StorageMigration {
    /// Creates the controller.
    #[must_use]
    pub fn new(metrics: &QueueMetrics) -> Self {
        Self { queue: WorkQueue::with_metrics(NAME, BackoffPolicy::CONTROLLER, metrics) }
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
                        Ok(ReconcileOutcome::RequeueAfter(Duration::ZERO))
                    }
                    other => other,
                }
            }
        });
    }
}

impl Listener for StorageMigration {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&migrations(), "", &ListOptions::default()).await?.items;
            all.iter().for_each(|migration| self.queue.add(decision::resource_of(migration.object())));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if *change.resource() == migrations() {
            self.queue.add(decision::resource_of(change.stored().object()));
        }
    }
}

struct Migrator {
    registry: Registry,
    context: Context,
}

impl Migrator {
    async fn reconcile(&self, resource: &GroupResource) -> Result<ReconcileOutcome, Box<Status>> {
        let all = self.registry.list(&migrations(), "", &ListOptions::default()).await?.items;
        let mut reconciled = ReconcileOutcome::Done;
        for (migration, step) in decision::steps(&all, resource) {
            match step {
                MigrationStep::CleanUp => self.clean_up(resource, migration).await?,
                MigrationStep::Start => self.start(resource, migration).await?,
                MigrationStep::Run => reconciled = self.run(resource, migration).await?,
            }
        }
        Ok(reconciled)
    }

    async fn start(&self, resource: &GroupResource, migration: &StoredObject) -> Result<(), Box<Status>> {
        definition::report_started(&self.registry, resource, migration.name()).await?;
        self.set_condition(migration, RUNNING, "MigrationRunning", "The migration is running").await.map(drop)
    }

    async fn clean_up(&self, resource: &GroupResource, migration: &StoredObject) -> Result<(), Box<Status>> {
        definition::report_ended(&self.registry, resource, condition::is_true(migration.object(), SUCCEEDED))
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
    async fn run(
        &self,
        resource: &GroupResource,
        migration: &StoredObject,
    ) -> Result<ReconcileOutcome, Box<Status>> {
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
            None if may_still_appear(object, Timestamp::now()) => {
                return Ok(ReconcileOutcome::RequeueAfter(RETRY_DELAY));
            }
            None => return self.fail(migration, "resource does not exist in discovery").await,
        }
        let recorded = object.at(&["status", "resourceVersion"]).str().parse::<i64>().ok();
        let (migration, max_revision) = match recorded {
            Some(max_revision) => (migration.clone(), max_revision),
            None => self.record_revision(resource, migration).await?,
        };
        match rewrite::rewrite_all(&self.registry, &self.context, resource, max_revision).await? {
            RewriteOutcome::Done => {
                self.set_condition(&migration, SUCCEEDED, "StorageVersionMigrationSucceeded", "").await?;
                Ok(ReconcileOutcome::Done)
            }
            RewriteOutcome::Refused(status) => {
                let message = format!("migration encountered unhandled error: {}", status.message);
                self.fail(&migration, &message).await
            }
        }
    }

    async fn record_revision(
        &self,
        resource: &GroupResource,
        migration: &StoredObject,
    ) -> Result<(StoredObject, i64), Box<Status>> {
        let options = ListOptions { limit: 1, ..ListOptions::default() };
        let revision = self.registry.list(resource, "", &options).await?.revision;
        let set_revision =
            |object: &mut Object| object.set(&["status", "resourceVersion"], revision.to_string());
        Ok((self.write(migration, set_revision).await?, revision))
    }

    async fn fail(&self, migration: &StoredObject, message: &str) -> Result<ReconcileOutcome, Box<Status>> {
        self.set_condition(migration, FAILED, "StorageVersionMigrationFailed", message).await?;
        Ok(ReconcileOutcome::Done)
    }

    async fn set_condition(
        &self,
        migration: &StoredObject,
        kind: &str,
        reason: &str,
        message: &str,
    ) -> Result<StoredObject, Box<Status>> {
        let reported = Condition::new(kind, "True", reason, message);
        self.write(migration, |object| {
            condition::set(object, reported, Timestamp::now());
        })
        .await
    }

    async fn write(
        &self,
        migration: &StoredObject,
        change: impl FnOnce(&mut Object),
    ) -> Result<StoredObject, Box<Status>> {
        let mut object = migration.object().clone();
        change(&mut object);
        Ok(self.registry.update_status(&self.context, &migrations(), object).await?.stored)
    }
}

/// Returns true if the resource may still appear: definition and migration are often applied together.
fn may_still_appear(migration: &Object, now: Timestamp) -> bool {
    let created = migration.creation_timestamp().and_then(time::parse);
    created.is_some_and(|created| now.duration_since(created).unsigned_abs() < RESOURCE_WAIT)
}

fn migrations() -> GroupResource {
    GroupResource::new("storagemigration.k8s.io", "storageversionmigrations")
}
