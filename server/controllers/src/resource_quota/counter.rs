//! Counts the usage of a quota in a snapshot that contains the quota and all counted objects at one revision.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, Object, Quantity, Status};
use portico_quota::{
    DeviceContext, Evaluator, ResourceList, add_resources, counted_resources, evaluator, scope_requirements,
    total_usage,
};
use portico_registry::{ConsistentSnapshots, Registry, StoredObject};

use super::decision::{self, KindUsage};
use super::foreign_counts::{COUNTABLE_VERBS, Collection, ForeignCounts};
use super::quota_index::{QuotaKey, quotas};

/// Number of objects decoded before other tasks may run.
const YIELD_INTERVAL: usize = 256;

/// Counter of the usage of quotas. Cheap to clone.
#[derive(Clone)]
pub(super) struct QuotaCounter {
    pub(super) registry: Registry,
    pub(super) foreign: ForeignCounts,
    /// Kinds that were served at some time. Objects of a kind that is no longer served count as zero.
    served: Arc<Mutex<BTreeSet<GroupResource>>>,
}

/// Result of a count.
pub(super) struct CountResult {
    /// The quota at the revision of the count.
    pub(super) quota: StoredObject,
    pub(super) counted: Vec<KindUsage>,
    /// Time at which the usage changes without a write; `None` if it does not.
    pub(super) changes_at: Option<Timestamp>,
}

/// A kind that a quota counts.
enum CountedKind {
    Local(GroupResource),
    Foreign(GroupResource),
}

impl QuotaCounter {
    pub(super) fn new(registry: Registry, foreign: ForeignCounts) -> Self {
        Self { registry, foreign, served: Arc::default() }
    }

    /// Counts the usage of a quota; `None` if the quota does not exist.
    pub(super) async fn count_quota(&self, key: &QuotaKey) -> Result<Option<CountResult>, Box<Status>> {
        let Some(quota) = self.snapshot(&[], key).await?.1 else { return Ok(None) };
        let kinds = self.kinds(quota.object());
        let local = kinds.iter().filter_map(|kind| match kind {
            CountedKind::Local(resource) => Some(resource.clone()),
            CountedKind::Foreign(_) => None,
        });
        let mut resources: Vec<GroupResource> = local.chain([quotas()]).collect();
        if resources.contains(&claims()) {
            resources.extend([device_classes(), pods()]);
        }
        let (snapshots, quota) = self.snapshot(&resources, key).await?;
        let Some(quota) = quota else { return Ok(None) };
        let device_context = match resources.contains(&claims()) {
            true => read_device_context(&snapshots, &key.namespace)?,
            false => DeviceContext::default(),
        };
        let input = CountInput {
            snapshots: &snapshots,
            quota: quota.object(),
            namespace: &key.namespace,
            now: self.registry.objects().request_time().now,
        };
        let (mut counted, mut changes_at) = (Vec::new(), None);
        for kind in &kinds {
            match kind {
                CountedKind::Local(resource) => {
                    let evaluator = evaluator(resource, &device_context);
                    let (kind, at) = input.count(resource, &*evaluator).await;
                    counted.push(kind);
                    changes_at = [changes_at, at].into_iter().flatten().min();
                }
                CountedKind::Foreign(resource) => {
                    counted.extend(self.foreign_usage(resource, quota.object(), key))
                }
            }
        }
        Ok(Some(CountResult { quota, counted, changes_at }))
    }

    /// Reads these resources and the quota at one revision.
    async fn snapshot(
        &self,
        resources: &[GroupResource],
        key: &QuotaKey,
    ) -> Result<(ConsistentSnapshots, Option<StoredObject>), Box<Status>> {
        let resource = quotas();
        let mut all = resources.to_vec();
        if !all.contains(&resource) {
            all.push(resource.clone());
        }
        let snapshots = self.registry.consistent_snapshots(&all).await?;
        let quota = snapshots.get(&resource, &key.namespace, &key.name);
        Ok((snapshots, quota))
    }

    /// Returns the served kinds that a quota counts.
    fn kinds(&self, quota: &Object) -> Vec<CountedKind> {
        let names = decision::limited_resources(quota);
        let mut served = self.served.lock();
        let mut kinds = Vec::new();
        for resource in counted_resources(names.iter().map(String::as_str)) {
            if self.registry.is_namespaced_with(&resource, &COUNTABLE_VERBS) {
                served.insert(resource.clone());
                kinds.push(CountedKind::Local(resource));
            } else if served.contains(&resource) {
                kinds.push(CountedKind::Local(resource));
            } else if self.foreign.may_have(&resource) {
                kinds.push(CountedKind::Foreign(resource));
            }
        }
        kinds
    }

    /// Returns the usage by objects on another server; `None` while their number is unknown.
    fn foreign_usage(&self, resource: &GroupResource, quota: &Object, key: &QuotaKey) -> Option<KindUsage> {
        let collection = Collection { namespace: key.namespace.clone(), resource: resource.clone() };
        let count = self.foreign.count(collection)?;
        let device_context = DeviceContext::default();
        let names = limited_names(&*evaluator(resource, &device_context), quota);
        let count = if scope_requirements(quota).is_empty() { count } else { 0 };
        Some(uniform_usage(names, usize::try_from(count).unwrap_or(usize::MAX)))
    }
}

/// A snapshot of objects and a quota at one revision.
struct CountInput<'a> {
    snapshots: &'a ConsistentSnapshots,
    quota: &'a Object,
    namespace: &'a str,
    now: Timestamp,
}

impl CountInput<'_> {
    /// Counts the usage by objects of a kind, and returns the time at which it changes without a write.
    async fn count(
        &self,
        resource: &GroupResource,
        evaluator: &dyn Evaluator,
    ) -> (KindUsage, Option<Timestamp>) {
        let (names, scopes) = (limited_names(evaluator, self.quota), scope_requirements(self.quota));
        if evaluator.is_plain_count() {
            let count = self.snapshots.count(resource, self.namespace);
            return (uniform_usage(names, if scopes.is_empty() { count } else { 0 }), None);
        }
        let mut objects = match self.snapshots.objects(resource, self.namespace) {
            Ok(objects) => objects,
            Err(status) => return (KindUsage { names, usage: Err(status.message) }, None),
        };
        let listed: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut usage = total_usage(evaluator, &listed, &scopes, [] as [Object; 0], self.now);
        let mut changes_at: Option<Timestamp> = None;
        loop {
            let chunk: Vec<Object> = objects.by_ref().take(YIELD_INTERVAL).collect();
            if chunk.is_empty() {
                return (KindUsage { names, usage: Ok(usage) }, changes_at);
            }
            changes_at = chunk
                .iter()
                .filter_map(|object| evaluator.next_usage_change(object, self.now))
                .chain(changes_at)
                .min();
            add_resources(&mut usage, &total_usage(evaluator, &listed, &scopes, &chunk, self.now));
            tokio::task::yield_now().await;
        }
    }
}

/// Returns a usage of `count` for each name.
fn uniform_usage(names: Vec<String>, count: usize) -> KindUsage {
    let count = Quantity::whole(i64::try_from(count).unwrap_or(i64::MAX));
    let usage: ResourceList = names.iter().map(|name| (name.clone(), count.clone())).collect();
    KindUsage { names, usage: Ok(usage) }
}

/// Returns the limited resources of a quota that objects of a kind use.
fn limited_names(evaluator: &dyn Evaluator, quota: &Object) -> Vec<String> {
    let hard = quota.at(&["spec", "hard"]);
    hard.entries()
        .map(|(name, _)| name)
        .filter(|name| evaluator.matches_resource(name))
        .map(str::to_owned)
        .collect()
}

fn read_device_context(
    snapshots: &ConsistentSnapshots,
    namespace: &str,
) -> Result<DeviceContext, Box<Status>> {
    let classes: Vec<Object> = snapshots.objects(&device_classes(), "")?.collect();
    let is_extended = |claim: &Object| portico_quota::extended_claim_owner(claim).is_some();
    let extended_claims: Vec<Object> = snapshots.objects(&claims(), namespace)?.filter(is_extended).collect();
    let device_context = DeviceContext::from_classes(&classes);
    if extended_claims.is_empty() {
        return Ok(device_context);
    }
    let pods = snapshots.objects(&pods(), namespace)?.collect();
    Ok(device_context.with_namespace(pods, extended_claims))
}

fn claims() -> GroupResource {
    GroupResource::new("resource.k8s.io", "resourceclaims")
}

fn device_classes() -> GroupResource {
    GroupResource::new("resource.k8s.io", "deviceclasses")
}

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}
