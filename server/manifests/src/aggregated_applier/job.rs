//! State and result of one pass over the documents of a group on other servers.
//!
//! A server that does not respond receives no further requests in the same pass.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use portico_machinery::{GroupResource, GroupVersion};
use portico_registry::{Registry, Target};
use tokio::time::Instant;

use crate::apply::{self, ApplyOutcome, ObjectKey};
use crate::document::{Document, Fault, Origin};
use crate::foreign_servers::{ForeignApiClient, ForeignResource};
use crate::record::ResourceRecord;
use crate::requests::Refusal;

/// Time for applying manifests to the servers of one API group, approximately.
///
/// Limit (Manifests): the rest waits for the next run.
const PASS_TIMEOUT: Duration = Duration::from_secs(30);

/// Handling of objects whose manifests were removed from the folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PrunePolicy {
    /// Do not look for such objects, because the folder has faults.
    #[default]
    Defer,
    /// Keep such objects, for this reason.
    Keep(&'static str),
    /// Delete such objects.
    Delete,
}

/// Input of a pass.
pub(super) struct GroupJob {
    pub(super) registry: Registry,
    pub(super) client: Arc<dyn ForeignApiClient>,
    pub(super) group: String,
    pub(super) documents: Vec<Document>,
    /// Documents that need not be applied again, by digest.
    pub(super) applied_before: HashMap<String, ObjectKey>,
    pub(super) prune_policy: PrunePolicy,
}

/// Result of a pass.
#[derive(Debug, Default)]
pub(crate) struct GroupResult {
    pub(crate) created: usize,
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    /// Digests of the documents that match the objects on the server.
    pub(crate) applied: HashMap<ObjectKey, String>,
    /// Documents that wait for their server.
    pub(crate) waiting: Vec<Fault>,
    /// Documents that were refused.
    pub(crate) refused: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
    /// Objects without a manifest that remain, with the reason.
    pub(crate) remaining: Vec<String>,
    /// True if the pass has looked for such objects.
    pub(crate) has_searched_remaining: bool,
    pub(crate) deleted: usize,
    /// True if pruning must be retried.
    pub(crate) needs_retry: bool,
    /// Group versions with objects in the record; `None` if the record could not be read.
    pub(crate) recorded: Option<BTreeSet<GroupVersion>>,
}

/// Reason why a document is not applied.
enum NotAppliedReason {
    Waiting(String),
    Refused(String),
}

/// A running pass.
pub(super) struct GroupPass<'a> {
    pub(super) job: &'a GroupJob,
    pub(super) record: ResourceRecord,
    pub(super) result: GroupResult,
    /// Resources of each group version, or the reason why its server cannot be queried.
    servers: BTreeMap<GroupVersion, Result<Vec<ForeignResource>, String>>,
    origins: HashMap<ObjectKey, Origin>,
    deadline: Instant,
}

impl<'a> GroupPass<'a> {
    /// Starts a pass.
    pub(super) fn new(job: &'a GroupJob, record: ResourceRecord) -> Self {
        let (servers, origins, deadline) = (BTreeMap::new(), HashMap::new(), Instant::now() + PASS_TIMEOUT);
        Self { job, record, result: GroupResult::default(), servers, origins, deadline }
    }

    /// Applies a document, or records the reason why it is not applied.
    pub(super) async fn apply_or_record(&mut self, document: &Document) {
        match self.apply_unless_applied(document).await {
            Ok(()) => {}
            Err(NotAppliedReason::Waiting(reason)) => self.result.waiting.push(document.fault(reason)),
            Err(NotAppliedReason::Refused(reason)) => self.result.refused.push(document.fault(reason)),
        }
    }

    async fn apply_unless_applied(&mut self, document: &Document) -> Result<(), NotAppliedReason> {
        let applied_key = self.job.applied_before.get(&document.digest).cloned();
        let (key, target) = match applied_key {
            // No request is sent: the server may be unavailable.
            Some(key) => (key, None),
            None => {
                let resource = self.resource(document).await?;
                let (key, target) = apply::aggregated_target(document, &resource);
                (key, Some(target))
            }
        };
        let source = self.origins.entry(key.clone()).or_insert_with(|| document.origin.clone());
        if *source != document.origin {
            return Err(NotAppliedReason::Refused(format!(
                "duplicate of the object in {source}, which takes precedence"
            )));
        }
        if let Some(target) = target {
            self.apply(document, &key.resource, target).await?;
        }
        self.result.applied.insert(key, document.digest.clone());
        Ok(())
    }

    async fn apply(
        &mut self,
        document: &Document,
        resource: &GroupResource,
        target: Target,
    ) -> Result<(), NotAppliedReason> {
        let (registry, version) = (&self.job.registry, target.version.clone());
        let recorded = self.record.add_with_version(registry, resource, &version).await;
        recorded.map_err(|status| NotAppliedReason::Waiting(status.message))?;
        let applied = apply::apply_aggregated(&*self.job.client, document, target).await;
        let group_version = document.kind.group_version();
        let applied = applied.map_err(|refusal| self.classify_refusal(&group_version, refusal))?;
        self.result.warnings.extend(applied.warnings.iter().map(|warning| document.fault(warning)));
        match applied.outcome {
            ApplyOutcome::Created => self.result.created += 1,
            ApplyOutcome::Changed => self.result.changed += 1,
            ApplyOutcome::Unchanged => self.result.unchanged += 1,
        }
        Ok(())
    }

    /// Returns the resource of a document.
    async fn resource(&mut self, document: &Document) -> Result<ForeignResource, NotAppliedReason> {
        let (kind, group_version) = (&document.kind.kind, document.kind.group_version());
        let resources = self.resources(&group_version).await.map_err(NotAppliedReason::Waiting)?;
        resources.iter().find(|resource| resource.kind == *kind).cloned().ok_or_else(|| {
            let (name, version) = (group_version.api_service_name(), document.object.api_version());
            NotAppliedReason::Refused(format!(
                "the API server of APIService {name} does not serve kind {kind} of {version}"
            ))
        })
    }

    /// Returns the resources of a group version, or the reason why its server cannot be queried now.
    pub(super) async fn resources(
        &mut self,
        group_version: &GroupVersion,
    ) -> Result<&[ForeignResource], String> {
        if Instant::now() > self.deadline {
            return Err(format!(
                "not applied yet: the API server did not respond within {} s",
                PASS_TIMEOUT.as_secs()
            ));
        }
        if !self.servers.contains_key(group_version) {
            let client = &self.job.client;
            let found = match client.check_reachable(group_version) {
                Ok(()) => client.resources(group_version).await,
                Err(reason) => Err(reason),
            };
            self.servers.insert(group_version.clone(), found);
        }
        match self.servers.get(group_version) {
            Some(Ok(resources)) => Ok(resources),
            Some(Err(reason)) => Err(reason.clone()),
            None => Ok(&[]),
        }
    }

    fn classify_refusal(&mut self, group_version: &GroupVersion, refusal: Refusal) -> NotAppliedReason {
        self.record_outage(group_version, &refusal);
        if refusal.is_temporary || refusal.code >= 500 {
            NotAppliedReason::Waiting(refusal.message)
        } else {
            NotAppliedReason::Refused(refusal.message)
        }
    }

    /// Stops requests to a server that does not respond.
    pub(super) fn record_outage(&mut self, group_version: &GroupVersion, refusal: &Refusal) {
        if matches!(refusal.code, 503 | 504) {
            self.servers.insert(group_version.clone(), Err(refusal.message.clone()));
        }
    }

    /// Returns true if an applied document belongs to this resource.
    pub(super) fn has_documents_of(&self, resource: &GroupResource) -> bool {
        self.result.applied.keys().any(|key| key.resource == *resource)
    }
}
