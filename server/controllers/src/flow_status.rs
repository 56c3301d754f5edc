//! Condition Dangling of a FlowSchema: true if its priority level does not exist. Applied in the same way as by upstream's
//! consumer of the configuration.

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status, time};
use portico_registry::{
    Context, CreateOptions, ListOptions, LogEntry, ObjectPart, ObjectPath, ObjectRef, PatchOptions, Registry,
};
use serde::Serialize;

use crate::log::Listener;
use crate::write_result::ignore_reasons;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Upstream's field manager.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const DANGLING: &str = "Dangling";

/// Item of the work queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FlowStatusItem {
    /// A schema, by name.
    Schema(String),
    /// The schemas that name this level.
    Level(String),
    /// All schemas.
    All,
}

/// Condition in the apply configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    r#type: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
    last_transition_time: String,
}

/// Returns the desired condition of a schema; `None` if the condition is up to date. Pure.
#[must_use]
pub fn condition(schema: &Object, level_exists: bool, now: Timestamp) -> Option<Condition> {
    let level = level_of(schema);
    let (status, reason, rest) = match level_exists {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {rest}");
    let conditions = schema.at(&["status", "conditions"]);
    let right = conditions.items().any(|c| {
        c.field("type").str() == DANGLING
            && c.field("status").str() == status
            && c.field("reason").str() == reason
            && c.field("message").str() == message
    });
    let last_transition_time = time::rfc3339(now);
    (!right).then_some(Condition { r#type: DANGLING, status, reason, message, last_transition_time })
}

/// Controller of the condition of all schemas. Cheap to clone.
#[derive(Clone)]
pub struct FlowStatus {
    queue: WorkQueue<FlowStatusItem>,
}

impl FlowStatus {
    /// Creates the controller.
    #[must_use]
    pub fn new(metrics: &QueueMetrics) -> Self {
        Self {
            queue: WorkQueue::with_metrics(
                "priority_and_fairness_config_queue",
                BackoffPolicy::CONTROLLER,
                metrics,
            ),
        }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "flow-status", 1, self.queue.clone(), move |item| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, item).await.map(|()| ReconcileOutcome::Done) }
        });
    }

    async fn reconcile(&self, registry: &Registry, item: FlowStatusItem) -> Result<(), Box<Status>> {
        let level = match item {
            FlowStatusItem::Schema(name) => return reconcile_schema(registry, &name).await,
            FlowStatusItem::Level(level) => Some(level),
            FlowStatusItem::All => None,
        };
        let all = registry.list(&schemas(), "", &ListOptions::default()).await?.items;
        for schema in
            all.iter().filter(|s| level.as_deref().is_none_or(|level| level_of(s.object()) == level))
        {
            self.queue.add(FlowStatusItem::Schema(schema.name().to_owned()));
        }
        Ok(())
    }
}

impl Listener for FlowStatus {
    fn resync<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.queue.add(FlowStatusItem::All);
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        if change.resource().group != GROUP {
            return;
        }
        match change.resource().resource.as_str() {
            "flowschemas" if !change.is_deleted() => {
                self.queue.add(FlowStatusItem::Schema(change.name().to_owned()))
            }
            "prioritylevelconfigurations" => self.queue.add(FlowStatusItem::Level(change.name().to_owned())),
            _ => {}
        }
    }
}

async fn reconcile_schema(registry: &Registry, name: &str) -> Result<(), Box<Status>> {
    let object_ref = |resource: &str, name: &str| ObjectRef {
        resource: GroupResource::new(GROUP, resource),
        namespace: String::new(),
        name: name.to_owned(),
    };
    let Some(schema) = registry.get_stored(&object_ref("flowschemas", name)).await? else { return Ok(()) };
    let level =
        registry.get_stored(&object_ref("prioritylevelconfigurations", level_of(schema.object()))).await?;
    let Some(condition) = condition(schema.object(), level.is_some(), Timestamp::now()) else {
        return Ok(());
    };
    let mut config = Object::new(&GroupVersion::new(GROUP, "v1").kind("FlowSchema"));
    config.set(&["metadata", "name"], name);
    config.set(&["metadata", "uid"], schema.uid());
    config.set(&["status", "conditions"], [condition]);
    let write = CreateOptions { field_manager: MANAGER.to_owned(), ..CreateOptions::default() };
    let options = PatchOptions { write, force: Some(true) };
    let path = ObjectPath { part: ObjectPart::Subresource("status"), namespace: "", name };
    let context = Context::system("system:apiserver");
    let applied = registry.apply(&context, &schemas(), path, &config.to_json(), &options).await;
    // Deleted, or deleted and created again: a later event enqueues the schema.
    ignore_reasons(applied, &[Reason::NotFound, Reason::Conflict])
}

fn level_of(schema: &Object) -> &str {
    schema.at(&["spec", "priorityLevelConfiguration", "name"]).str()
}

fn schemas() -> GroupResource {
    GroupResource::new(GROUP, "flowschemas")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_existence_of_a_schemas_level_is_reported_once() {
        let mut schema = Object::new(&GroupVersion::new(GROUP, "v1").kind("FlowSchema"));
        schema.set(&["spec", "priorityLevelConfiguration", "name"], "p");
        let now = Timestamp::from_second(0).unwrap();
        let found = condition(&schema, true, now).unwrap();
        assert_eq!((found.status, found.reason), ("False", "Found"));
        let message =
            "This FlowSchema references the PriorityLevelConfiguration object named \"p\" and it exists";
        assert_eq!(found.message, message);
        schema.set(&["status", "conditions"], [found]);
        assert_eq!(condition(&schema, true, now), None);
        let missing = condition(&schema, false, now).unwrap();
        assert_eq!((missing.status, missing.reason), ("True", "NotFound"));
    }
}
