//! State and result of one pass over the documents of a group on other servers.
//!
//! A server that does not respond receives no further requests in the same pass.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use portico_machinery::{GroupResource, GroupVersion};
use portico_registry::{Registry, Target};
use tokio::time::Instant;

use crate::apply::{self, Key, Outcome};
use crate::document::{Document, Fault, Origin};
use crate::other_servers::{OtherResource, OtherServers};
use crate::record::Record;
use crate::requests::Refusal;

/// Time for applying manifests to the servers of one API group, approximately.
///
/// Limit (Manifests): the rest waits for the next run.
const TIME: Duration = Duration::from_secs(30);

/// Handling of objects whose manifests were removed from the folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pruning {
    /// Do not look for such objects, because the folder has faults.
    #[default]
    Later,
    /// Keep such objects, for this reason.
    Kept(&'static str),
    /// Delete such objects.
    Asked,
}

/// Input of a pass.
pub(super) struct Job {
    pub(super) registry: Registry,
    pub(super) others: Arc<dyn OtherServers>,
    pub(super) group: String,
    pub(super) documents: Vec<Document>,
    /// Documents that need not be applied again, by digest.
    pub(super) known: HashMap<String, Key>,
    pub(super) pruning: Pruning,
}

/// Result of a pass.
#[derive(Debug, Default)]
pub(crate) struct Visit {
    pub(crate) created: usize,
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    /// Digests of the documents that match the objects on the server.
    pub(crate) applied: HashMap<Key, String>,
    /// Documents that wait for their server.
    pub(crate) waiting: Vec<Fault>,
    /// Documents that were refused.
    pub(crate) refused: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
    /// Objects without a manifest that remain, with the reason.
    pub(crate) left: Vec<String>,
    /// True if the pass has looked for such objects.
    pub(crate) has_looked: bool,
    pub(crate) deleted: usize,
    /// True if pruning must be retried.
    pub(crate) has_undone: bool,
    /// Group versions with objects in the record; `None` if the record could not be read.
    pub(crate) recorded: Option<BTreeSet<GroupVersion>>,
}

/// Reason why a document is not applied.
enum Unapplied {
    Waits(String),
    Refused(String),
}

/// A running pass.
pub(super) struct Visiting<'a> {
    pub(super) job: &'a Job,
    pub(super) record: Record,
    pub(super) visit: Visit,
    /// Resources of each group version, or the reason why its server cannot be queried.
    servers: BTreeMap<GroupVersion, Result<Vec<OtherResource>, String>>,
    sources: HashMap<Key, Origin>,
    until: Instant,
}

impl<'a> Visiting<'a> {
    /// Starts a pass.
    pub(super) fn new(job: &'a Job, record: Record) -> Self {
        let (servers, sources, until) = (BTreeMap::new(), HashMap::new(), Instant::now() + TIME);
        Self { job, record, visit: Visit::default(), servers, sources, until }
    }

    /// Applies a document, or records the reason why it is not applied.
    pub(super) async fn document(&mut self, document: &Document) {
        match self.one(document).await {
            Ok(()) => {}
            Err(Unapplied::Waits(why)) => self.visit.waiting.push(document.fault(why)),
            Err(Unapplied::Refused(why)) => self.visit.refused.push(document.fault(why)),
        }
    }

    async fn one(&mut self, document: &Document) -> Result<(), Unapplied> {
        let known = self.job.known.get(&document.digest).cloned();
        let (key, target) = match known {
            // No request is sent: the server may be unavailable.
            Some(key) => (key, None),
            None => {
                let resource = self.resource(document).await?;
                let (key, target) = apply::place_aggregated(document, &resource);
                (key, Some(target))
            }
        };
        let source = self.sources.entry(key.clone()).or_insert_with(|| document.origin.clone());
        if *source != document.origin {
            return Err(Unapplied::Refused(format!(
                "duplicate of the object in {source}, which takes precedence"
            )));
        }
        if let Some(target) = target {
            self.apply(document, &key.resource, target).await?;
        }
        self.visit.applied.insert(key, document.digest.clone());
        Ok(())
    }

    async fn apply(
        &mut self,
        document: &Document,
        resource: &GroupResource,
        target: Target,
    ) -> Result<(), Unapplied> {
        let (registry, version) = (&self.job.registry, target.version.clone());
        let recorded = self.record.add_in(registry, resource, &version).await;
        recorded.map_err(|status| Unapplied::Waits(status.message))?;
        let applied = apply::apply_aggregated(&*self.job.others, document, target).await;
        let group_version = document.kind.group_version();
        let applied = applied.map_err(|refusal| self.unapplied(&group_version, refusal))?;
        self.visit.warnings.extend(applied.warnings.iter().map(|warning| document.fault(warning)));
        match applied.outcome {
            Outcome::Created => self.visit.created += 1,
            Outcome::Changed => self.visit.changed += 1,
            Outcome::Unchanged => self.visit.unchanged += 1,
        }
        Ok(())
    }

    /// Returns the resource of a document.
    async fn resource(&mut self, document: &Document) -> Result<OtherResource, Unapplied> {
        let (kind, group_version) = (&document.kind.kind, document.kind.group_version());
        let resources = self.resources(&group_version).await.map_err(Unapplied::Waits)?;
        resources.iter().find(|resource| resource.kind == *kind).cloned().ok_or_else(|| {
            let (name, version) = (group_version.api_service_name(), document.object.api_version());
            Unapplied::Refused(format!(
                "the API server of APIService {name} does not serve kind {kind} of {version}"
            ))
        })
    }

    /// Returns the resources of a group version, or the reason why its server cannot be queried now.
    pub(super) async fn resources(
        &mut self,
        group_version: &GroupVersion,
    ) -> Result<&[OtherResource], String> {
        if Instant::now() > self.until {
            return Err(format!(
                "not applied yet: the API server did not respond within {} s",
                TIME.as_secs()
            ));
        }
        if !self.servers.contains_key(group_version) {
            let others = &self.job.others;
            let found = match others.reachable(group_version) {
                Ok(()) => others.resources(group_version).await,
                Err(why) => Err(why),
            };
            self.servers.insert(group_version.clone(), found);
        }
        match self.servers.get(group_version) {
            Some(Ok(resources)) => Ok(resources),
            Some(Err(why)) => Err(why.clone()),
            None => Ok(&[]),
        }
    }

    fn unapplied(&mut self, group_version: &GroupVersion, refusal: Refusal) -> Unapplied {
        self.note(group_version, &refusal);
        if refusal.passes || refusal.code >= 500 {
            Unapplied::Waits(refusal.message)
        } else {
            Unapplied::Refused(refusal.message)
        }
    }

    /// Stops requests to a server that does not respond.
    pub(super) fn note(&mut self, group_version: &GroupVersion, refusal: &Refusal) {
        if matches!(refusal.code, 503 | 504) {
            self.servers.insert(group_version.clone(), Err(refusal.message.clone()));
        }
    }

    /// Returns true if an applied document belongs to this resource.
    pub(super) fn has_documents_of(&self, resource: &GroupResource) -> bool {
        self.visit.applied.keys().any(|key| key.resource == *resource)
    }
}
