//! Counts the usage of a quota in a snapshot that contains the quota and all counted objects at one revision.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, Object, Quantity, Status};
use portico_quota::{
    Amounts, Evaluator, Surroundings, add, counted_resources, evaluator, requirements, total,
};
use portico_registry::{ConsistentSnapshots, Registry, Stored};

use super::aggregated::{COUNTABLE_VERBS, Collection, ForeignCounts};
use super::decide::{self, Counted};
use super::watched::{QuotaKey, quotas};

/// Number of objects decoded before other tasks may run.
const TURN: usize = 256;

/// Counter of the usage of quotas. Cheap to clone.
#[derive(Clone)]
pub(super) struct Counter {
    pub(super) registry: Registry,
    pub(super) foreign: ForeignCounts,
    /// Kinds that were served at some time. Objects of a kind that is no longer served count as zero.
    served: Arc<Mutex<BTreeSet<GroupResource>>>,
}

/// Result of a count.
pub(super) struct Recount {
    /// The quota at the revision of the count.
    pub(super) quota: Stored,
    pub(super) counted: Vec<Counted>,
    /// Time at which the usage changes without a write; `None` if it does not.
    pub(super) changes_at: Option<Timestamp>,
}

/// A kind that a quota counts.
enum Kind {
    Local(GroupResource),
    Foreign(GroupResource),
}

impl Counter {
    pub(super) fn new(registry: Registry, foreign: ForeignCounts) -> Self {
        Self { registry, foreign, served: Arc::default() }
    }

    /// Counts the usage of a quota; `None` if the quota does not exist.
    pub(super) async fn recount(&self, key: &QuotaKey) -> Result<Option<Recount>, Box<Status>> {
        let Some(quota) = self.look(&[], key).await?.1 else { return Ok(None) };
        let kinds = self.kinds(quota.object());
        let local = kinds.iter().filter_map(|kind| match kind {
            Kind::Local(resource) => Some(resource.clone()),
            Kind::Foreign(_) => None,
        });
        let mut resources: Vec<GroupResource> = local.chain([quotas()]).collect();
        if resources.contains(&claims()) {
            resources.extend([device_classes(), pods()]);
        }
        let (together, quota) = self.look(&resources, key).await?;
        let Some(quota) = quota else { return Ok(None) };
        let surroundings = match resources.contains(&claims()) {
            true => surroundings(&together, &key.namespace)?,
            false => Surroundings::default(),
        };
        let counting = Counting {
            together: &together,
            quota: quota.object(),
            namespace: &key.namespace,
            now: self.registry.objects().moment().now,
        };
        let (mut counted, mut changes_at) = (Vec::new(), None);
        for kind in &kinds {
            match kind {
                Kind::Local(resource) => {
                    let evaluator = evaluator(resource, &surroundings);
                    let (kind, at) = counting.count(resource, &*evaluator).await;
                    counted.push(kind);
                    changes_at = [changes_at, at].into_iter().flatten().min();
                }
                Kind::Foreign(resource) => counted.extend(self.foreign_usage(resource, quota.object(), key)),
            }
        }
        Ok(Some(Recount { quota, counted, changes_at }))
    }

    /// Reads these resources and the quota at one revision.
    async fn look(
        &self,
        resources: &[GroupResource],
        key: &QuotaKey,
    ) -> Result<(ConsistentSnapshots, Option<Stored>), Box<Status>> {
        let resource = quotas();
        let mut all = resources.to_vec();
        if !all.contains(&resource) {
            all.push(resource.clone());
        }
        let together = self.registry.together(&all).await?;
        let quota = together.get(&resource, &key.namespace, &key.name);
        Ok((together, quota))
    }

    /// Returns the served kinds that a quota counts.
    fn kinds(&self, quota: &Object) -> Vec<Kind> {
        let names = decide::limited(quota);
        let mut served = self.served.lock();
        let mut kinds = Vec::new();
        for resource in counted_resources(names.iter().map(String::as_str)) {
            if self.registry.is_namespaced_with(&resource, &COUNTABLE_VERBS) {
                served.insert(resource.clone());
                kinds.push(Kind::Local(resource));
            } else if served.contains(&resource) {
                kinds.push(Kind::Local(resource));
            } else if self.foreign.may_have(&resource) {
                kinds.push(Kind::Foreign(resource));
            }
        }
        kinds
    }

    /// Returns the usage by objects on another server; `None` while their number is unknown.
    fn foreign_usage(&self, resource: &GroupResource, quota: &Object, key: &QuotaKey) -> Option<Counted> {
        let collection = Collection { namespace: key.namespace.clone(), resource: resource.clone() };
        let count = self.foreign.count(collection)?;
        let surroundings = Surroundings::default();
        let names = names_of(&*evaluator(resource, &surroundings), quota);
        let count = if requirements(quota).is_empty() { count } else { 0 };
        Some(plain(names, usize::try_from(count).unwrap_or(usize::MAX)))
    }
}

/// A snapshot of objects and a quota at one revision.
struct Counting<'a> {
    together: &'a ConsistentSnapshots,
    quota: &'a Object,
    namespace: &'a str,
    now: Timestamp,
}

impl Counting<'_> {
    /// Counts the usage by objects of a kind, and returns the time at which it changes without a write.
    async fn count(
        &self,
        resource: &GroupResource,
        evaluator: &dyn Evaluator,
    ) -> (Counted, Option<Timestamp>) {
        let (names, scopes) = (names_of(evaluator, self.quota), requirements(self.quota));
        if evaluator.is_plain_count() {
            let count = self.together.count(resource, self.namespace);
            return (plain(names, if scopes.is_empty() { count } else { 0 }), None);
        }
        let mut objects = match self.together.objects(resource, self.namespace) {
            Ok(objects) => objects,
            Err(status) => return (Counted { names, usage: Err(status.message) }, None),
        };
        let listed: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut usage = total(evaluator, &listed, &scopes, [] as [Object; 0], self.now);
        let mut changes_at: Option<Timestamp> = None;
        loop {
            let turn: Vec<Object> = objects.by_ref().take(TURN).collect();
            if turn.is_empty() {
                return (Counted { names, usage: Ok(usage) }, changes_at);
            }
            changes_at = turn
                .iter()
                .filter_map(|object| evaluator.changes_at(object, self.now))
                .chain(changes_at)
                .min();
            add(&mut usage, &total(evaluator, &listed, &scopes, &turn, self.now));
            tokio::task::yield_now().await;
        }
    }
}

/// Returns a usage of `count` for each name.
fn plain(names: Vec<String>, count: usize) -> Counted {
    let count = Quantity::whole(i64::try_from(count).unwrap_or(i64::MAX));
    let usage: Amounts = names.iter().map(|name| (name.clone(), count.clone())).collect();
    Counted { names, usage: Ok(usage) }
}

/// Returns the limited resources of a quota that objects of a kind use.
fn names_of(evaluator: &dyn Evaluator, quota: &Object) -> Vec<String> {
    let hard = quota.at(&["spec", "hard"]);
    hard.entries().map(|(name, _)| name).filter(|name| evaluator.counts(name)).map(str::to_owned).collect()
}

fn surroundings(together: &ConsistentSnapshots, namespace: &str) -> Result<Surroundings, Box<Status>> {
    let classes: Vec<Object> = together.objects(&device_classes(), "")?.collect();
    let of_pods = |claim: &Object| portico_quota::extended_claim_owner(claim).is_some();
    let marked: Vec<Object> = together.objects(&claims(), namespace)?.filter(of_pods).collect();
    let surroundings = Surroundings::of_classes(&classes);
    if marked.is_empty() {
        return Ok(surroundings);
    }
    let pods = together.objects(&pods(), namespace)?.collect();
    Ok(surroundings.with(pods, marked))
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
