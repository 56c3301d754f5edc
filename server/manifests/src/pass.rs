//! One pass over the folder: applies each document in order, waits for definitions where necessary, and retries failed documents
//! after the others.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::StreamExt;
use portico_machinery::{GroupResource, GroupVersionKind, Object};
use portico_registry::Registry;
use tokio::time::{Instant, timeout_at};

use crate::apply::{self, ApplyOutcome, LocalTarget, ObjectKey};
use crate::content::FolderContent;
use crate::document::{Document, Fault, Origin};
use crate::foreign_servers::{self, DocumentsByServer};
use crate::record::ResourceRecord;
use crate::requests::{Refusal, Requests};

/// Attempts to apply a document in one pass, as long as other documents succeed.
///
/// Limit (Manifests): the document is a fault.
const MAX_ROUNDS: usize = 5;
/// Time for a definition in the folder to be served.
///
/// Limit (Manifests): its objects wait for the next pass.
const DEFINITION_TIMEOUT: Duration = Duration::from_secs(10);

/// Result of a pass.
#[derive(Debug, Default)]
pub(crate) struct PassResult {
    pub(crate) created: usize,
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    /// Number of documents that were skipped because an earlier pass applied them and they have not changed since.
    pub(crate) skipped: usize,
    pub(crate) faults: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
    /// Digests of the documents that match their objects.
    pub(crate) applied: HashMap<ObjectKey, String>,
    /// True if documents failed permanently and the pass changed nothing.
    pub(crate) is_stuck: bool,
    /// Documents for other servers, which this pass does not apply.
    pub(crate) aggregated: Vec<Document>,
}

/// Documents applied by earlier passes.
#[derive(Default)]
pub(crate) struct AppliedDocuments {
    /// Digest of the applied document, by object.
    pub(crate) applied: HashMap<ObjectKey, String>,
    /// True if the existence of the objects must be checked: after a failure, dependencies may be missing.
    pub(crate) needs_check: bool,
}

/// A running pass.
struct Pass<'a> {
    registry: &'a Registry,
    requests: &'a dyn Requests,
    record: &'a mut ResourceRecord,
    /// Documents that need not be applied again.
    applied_before: &'a AppliedDocuments,
    result: PassResult,
    /// Location of the document that defines each object.
    origins: HashMap<ObjectKey, Origin>,
    /// Kinds of the applied definitions.
    defined_kinds: HashSet<GroupVersionKind>,
    /// Kinds of applied definitions that were not served in time.
    not_served: HashMap<GroupVersionKind, Refusal>,
}

pub(crate) fn definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Applies the documents that are not known to be applied.
pub(crate) async fn run(
    registry: &Registry,
    requests: &dyn Requests,
    record: &mut ResourceRecord,
    content: &FolderContent,
    applied_before: &AppliedDocuments,
) -> PassResult {
    let DocumentsByServer { own, aggregated } =
        foreign_servers::sort_by_server(registry, &content.documents).await;
    let result = PassResult { faults: content.faults.clone(), aggregated, ..PassResult::default() };
    let (origins, defined_kinds, not_served) = (HashMap::new(), HashSet::new(), HashMap::new());
    let mut pass =
        Pass { registry, requests, record, applied_before, result, origins, defined_kinds, not_served };
    pass.record_resources(&own).await;
    let mut pending: Vec<&Document> = own.iter().collect();
    let mut failed = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let before = pass.write_count();
        failed = pass.apply_all(&pending).await;
        pending = failed.iter().map(|(document, _)| *document).collect();
        if failed.is_empty() || pass.write_count() == before {
            break;
        }
    }
    let may_succeed = failed.iter().any(|(_, refusal)| refusal.is_temporary);
    let faults = failed.into_iter().map(|(document, refusal)| document.fault(refusal.message));
    pass.result.faults.extend(faults);
    pass.await_definitions(&own).await;
    let may_succeed = may_succeed || pass.not_served.values().any(|refusal| refusal.is_temporary);
    pass.result.is_stuck = !pass.result.faults.is_empty() && !may_succeed && pass.write_count() == 0;
    pass.result
}

impl<'a> Pass<'a> {
    fn write_count(&self) -> usize {
        self.result.created + self.result.changed
    }

    /// Records the resources that are already known in one write; others are recorded when they are applied.
    async fn record_resources(&mut self, documents: &[Document]) {
        let resources = documents.iter().filter_map(|document| apply::local_target(self.registry, document));
        let resources: Vec<GroupResource> = resources.map(|target| target.key.resource).collect();
        if let Err(status) = self.record.add(self.registry, resources).await {
            tracing::debug!(error = %status, "cannot record the resources of manifests");
        }
    }

    async fn apply_all<'d>(&mut self, pending: &[&'d Document]) -> Vec<(&'d Document, Refusal)> {
        let mut failed = Vec::new();
        for document in pending {
            if let Err(refusal) = self.apply_one(document).await {
                failed.push((*document, refusal));
            }
        }
        failed
    }

    async fn apply_one(&mut self, document: &Document) -> Result<(), Refusal> {
        let target = self.target(document).await?;
        let source = self.origins.entry(target.key.clone()).or_insert_with(|| document.origin.clone());
        if *source != document.origin {
            return Err(Refusal::permanent(format!(
                "duplicate of the object in {source}, which takes precedence"
            )));
        }
        if self.is_up_to_date(document, &target).await? {
            self.result.skipped += 1;
        } else {
            let resource = target.key.resource.clone();
            self.record.add(self.registry, [resource]).await.map_err(|status| Refusal::from(&*status))?;
            let applied = apply::apply(self.registry, self.requests, document, &target).await?;
            self.result.warnings.extend(applied.warnings.iter().map(|warning| document.fault(warning)));
            match applied.outcome {
                ApplyOutcome::Created => self.result.created += 1,
                ApplyOutcome::Changed => self.result.changed += 1,
                ApplyOutcome::Unchanged => self.result.unchanged += 1,
            }
        }
        if target.key.resource == definitions() {
            self.defined_kinds.extend(kinds_of(&document.object));
        }
        self.result.applied.insert(target.key, document.digest.clone());
        Ok(())
    }

    /// Returns true if the document was applied without a change since, and its object still exists if that must be checked.
    async fn is_up_to_date(&self, document: &Document, target: &LocalTarget) -> Result<bool, Refusal> {
        let is_applied = self.applied_before.applied.get(&target.key) == Some(&document.digest);
        Ok(is_applied && (!self.applied_before.needs_check || apply::exists(self.registry, target).await?))
    }

    /// Returns the target of a document. Waits for kinds whose definition was applied.
    async fn target(&mut self, document: &Document) -> Result<LocalTarget, Refusal> {
        if let Some(target) = apply::local_target(self.registry, document) {
            return Ok(target);
        }
        let kind = &document.kind;
        if self.defined_kinds.contains(kind) && !self.not_served.contains_key(kind) {
            self.await_kinds(std::slice::from_ref(kind)).await;
        }
        let not_served = || match self.not_served.get(kind) {
            Some(refusal) => refusal.clone(),
            None => {
                let version = document.object.api_version();
                Refusal::permanent(format!("this server does not serve kind {} of {version}", kind.kind))
            }
        };
        apply::local_target(self.registry, document).ok_or_else(not_served)
    }

    /// Waits until the definitions of the folder are served. A definition that is not served in time is a fault.
    async fn await_definitions(&mut self, documents: &[Document]) {
        let kinds: Vec<_> =
            self.defined_kinds.iter().filter(|kind| !self.not_served.contains_key(*kind)).cloned().collect();
        self.await_kinds(&kinds).await;
        for document in documents.iter().filter(|document| document.kind.group == definitions().group) {
            let refusal = kinds_of(&document.object).into_iter().find_map(|kind| self.not_served.get(&kind));
            if let Some(refusal) = refusal {
                self.result.faults.push(document.fault(&refusal.message));
            }
        }
    }

    async fn await_kinds(&mut self, kinds: &[GroupVersionKind]) {
        let deadline = Instant::now() + DEFINITION_TIMEOUT;
        for kind in kinds {
            let served = timeout_at(deadline, self.is_served(kind)).await;
            if served != Ok(true) {
                let refusal = not_served_reason(self.registry, kind);
                self.not_served.insert(kind.clone(), refusal);
            }
        }
    }

    /// Waits until a kind is served. Returns false if the store closes.
    async fn is_served(&self, kind: &GroupVersionKind) -> bool {
        let is_served = || self.registry.objects().by_kind(kind).is_some();
        if is_served() {
            return true;
        }
        let Ok(mut feed) = self.registry.follow(&definitions()).await else { return false };
        while !is_served() {
            if feed.changes.next().await.is_none() {
                return false;
            }
        }
        true
    }
}

/// Returns the reason why a kind is not served, according to its definition.
fn not_served_reason(registry: &Registry, kind: &GroupVersionKind) -> Refusal {
    let versions = registry.version_statuses(&kind.group_version());
    let failing = versions.into_iter().find(|version| !version.is_served);
    match failing {
        Some(version) => {
            let message = format!("{} is not served: {}", version.definition, version.message);
            // Name conflicts last until a user changes a definition; other problems are temporary.
            Refusal { message, is_temporary: !version.reason.ends_with("Conflict"), code: 0 }
        }
        None => Refusal::temporary(format!(
            "kind {} is not served within {} s",
            kind.kind,
            DEFINITION_TIMEOUT.as_secs()
        )),
    }
}

/// Returns the kinds that a definition serves.
fn kinds_of(definition: &Object) -> Vec<GroupVersionKind> {
    let text = |path: &[&str]| definition.at(path).str().to_owned();
    let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
    let versions = definition.at(&["spec", "versions"]);
    let served = versions.items().filter(|version| version.field("served").bool());
    served
        .map(|version| GroupVersionKind {
            group: group.clone(),
            version: version.field("name").str().to_owned(),
            kind: kind.clone(),
        })
        .collect()
}
