//! `ttl-after-finished-controller`: deletes finished Jobs that have a TTL when it expires.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use portico_kit::backoff::BackoffPolicy;
use portico_kit::metrics::{self, Desc, Histogram};
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status, time};
use portico_registry::options::Preconditions;
use portico_registry::{DeleteOptions, ListOptions, LogEntry, Propagation, Registry};

use crate::account::{NamespacedName, service_account_context};
use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "ttl-after-finished-controller";
/// Bounds of the histogram in seconds: from 0.1, doubled each time.
const SECONDS_BUCKETS: &[f64] =
    &[0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2];

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct TtlAfterFinished {
    workers: usize,
    queue: WorkQueue<NamespacedName>,
    deletion_delay: Histogram,
}

/// Action for a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobAction {
    /// The Job has not finished, has no TTL, or is being deleted.
    Skip,
    /// Check again after this duration.
    Wait(Duration),
    /// Delete the Job, whose TTL expired this long ago.
    Delete(Duration),
}

impl TtlAfterFinished {
    /// Creates the controller; `workers` is `--concurrent-ttl-after-finished-syncs`.
    #[must_use]
    pub fn new(workers: usize, queues: &QueueMetrics, metrics: &metrics::Registry) -> Self {
        Self {
            workers,
            queue: WorkQueue::with_metrics("ttl_jobs_to_delete", BackoffPolicy::CONTROLLER, queues),
            deletion_delay: metrics.histogram(
                Desc::histogram(
                    "ttl_after_finished_controller_job_deletion_duration_seconds",
                    &[],
                    "[ALPHA] The time it took to delete the job since it became eligible for \
                     deletion",
                ),
                SECONDS_BUCKETS,
            ),
        }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, NAME, self.workers, self.queue.clone(), move |key| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, &key).await }
        });
    }

    async fn reconcile(
        &self,
        registry: &Registry,
        key: &NamespacedName,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        let Some(job) = registry.get_stored(&key.object_ref("batch", "jobs")).await? else {
            return Ok(ReconcileOutcome::Done);
        };
        let verdict = decide(job.object(), Timestamp::now()).map_err(Status::internal)?;
        let delay = match verdict {
            JobAction::Skip => return Ok(ReconcileOutcome::Done),
            JobAction::Wait(remaining) => return Ok(ReconcileOutcome::RequeueAfter(remaining)),
            JobAction::Delete(delay) => delay,
        };
        // The preconditions protect another Job with this name, and a changed TTL: both have their own events.
        let options = DeleteOptions {
            propagation: Some(Propagation::Foreground),
            preconditions: Preconditions {
                uid: Some(job.uid().to_owned()),
                resource_version: Some(job.revision().to_string()),
            },
            ..DeleteOptions::default()
        };
        let context = service_account_context("ttl-after-finished-controller");
        let deleted = registry.delete(&context, &jobs(), &key.namespace, &key.name, &options).await;
        ignore_reasons(deleted, &[Reason::NotFound])?;
        self.deletion_delay.observe(delay.as_secs_f64());
        Ok(ReconcileOutcome::Done)
    }
}

impl Listener for TtlAfterFinished {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&jobs(), "", &ListOptions::default()).await?.items;
            all.iter().for_each(|job| self.queue.add(NamespacedName::new(job.namespace(), job.name())));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if !change.is_deleted() && *change.resource() == jobs() {
            self.queue.add(NamespacedName::new(change.namespace(), change.name()));
        }
    }
}

fn jobs() -> GroupResource {
    GroupResource::new("batch", "jobs")
}

/// Returns the time at which a Job finished (`jobFinishTime`); `None` if it has not finished.
fn finish_time(job: &Object) -> Result<Option<Timestamp>, String> {
    let conditions = job.at(&["status", "conditions"]);
    let is_finished = |kind: &str, status: &str| matches!(kind, "Complete" | "Failed") && status == "True";
    let mut finished =
        conditions.items().filter(|c| is_finished(c.field("type").str(), c.field("status").str()));
    let Some(end) = finished.next() else { return Ok(None) };
    match end.field("lastTransitionTime").opt_str().and_then(time::parse) {
        Some(at) => Ok(Some(at)),
        None => {
            Err(format!("unable to find the time when the Job {}/{} finished", job.namespace(), job.name()))
        }
    }
}

/// Decides about a Job (`processTTL`). Pure.
fn decide(job: &Object, now: Timestamp) -> Result<JobAction, String> {
    let ttl = job.at(&["spec", "ttlSecondsAfterFinished"]).i64();
    let Some(ttl) = ttl.filter(|_| job.deletion_timestamp().is_none()) else { return Ok(JobAction::Skip) };
    let Some(finished) = finish_time(job)? else { return Ok(JobAction::Skip) };
    let remaining = SignedDuration::from_secs(ttl).saturating_sub(now.duration_since(finished));
    Ok(match Duration::try_from(remaining) {
        Ok(left) if !left.is_zero() => JobAction::Wait(left),
        _ => JobAction::Delete(remaining.unsigned_abs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_jobs_are_deleted_when_their_ttl_expires() {
        let now = time::parse("2026-01-01T00:01:00Z").unwrap();
        let finished_status =
            |at: &str| format!(r#""status":{{"conditions":[{{"type":"Failed","status":"True"{at}}}]}}"#);
        let (ttl, at) =
            (r#""spec":{"ttlSecondsAfterFinished":70}"#, r#","lastTransitionTime":"2026-01-01T00:00:00Z""#);
        let rows = [
            (format!("{{{ttl}}}"), Ok(JobAction::Skip)),
            (format!("{{{}}}", finished_status(at)), Ok(JobAction::Skip)),
            (format!("{{{ttl},{}}}", finished_status(at)), Ok(JobAction::Wait(Duration::from_secs(10)))),
            (
                format!("{{{},{}}}", ttl.replace("70", "0"), finished_status(at)),
                Ok(JobAction::Delete(Duration::from_secs(60))),
            ),
            (
                format!(
                    r#"{{"metadata":{{"deletionTimestamp":"2026-01-01T00:00:00Z"}},{ttl},{}}}"#,
                    finished_status(at)
                ),
                Ok(JobAction::Skip),
            ),
            (
                format!(r#"{{"metadata":{{"name":"j","namespace":"n"}},{ttl},{}}}"#, finished_status("")),
                Err("unable to find the time when the Job n/j finished".to_owned()),
            ),
        ];
        for (json, want) in rows {
            let job = Object::from_json(json.as_bytes()).unwrap();
            assert_eq!(decide(&job, now), want, "{json}");
        }
    }
}
