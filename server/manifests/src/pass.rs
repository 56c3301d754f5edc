//! One pass over the folder: applies each document in order, waits for definitions where necessary, and retries failed documents
//! after the others.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::StreamExt;
use portico_machinery::{GroupResource, GroupVersionKind, Object};
use portico_registry::Registry;
use tokio::time::{Instant, timeout_at};

use crate::apply::{self, Key, Outcome, Place};
use crate::document::{Document, Fault, Origin};
use crate::other_servers::{self, Sorted};
use crate::reading::Reading;
use crate::record::Record;
use crate::requests::{Refusal, Requests};

/// Attempts to apply a document in one pass, as long as other documents succeed.
///
/// Limit (Manifests): the document is a fault.
const MAX_ROUNDS: usize = 5;
/// Time for a definition in the folder to be served.
///
/// Limit (Manifests): its objects wait for the next pass.
const PATIENCE: Duration = Duration::from_secs(10);

/// Result of a pass.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) created: usize,
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    /// Number of documents that were applied before without a change since.
    pub(crate) skipped: usize,
    pub(crate) faults: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
    /// Digests of the documents that match their objects.
    pub(crate) applied: HashMap<Key, String>,
    /// True if documents failed permanently and the pass changed nothing.
    pub(crate) is_stuck: bool,
    /// Documents for other servers, which this pass does not apply.
    pub(crate) aggregated: Vec<Document>,
}

/// Documents applied by earlier passes.
#[derive(Default)]
pub(crate) struct Known {
    /// Digest of the applied document, by object.
    pub(crate) applied: HashMap<Key, String>,
    /// True if the existence of the objects must be checked: after a failure, dependencies may be missing.
    pub(crate) is_doubtful: bool,
}

/// A running pass.
struct Pass<'a> {
    registry: &'a Registry,
    requests: &'a dyn Requests,
    record: &'a mut Record,
    /// Documents that need not be applied again.
    known: &'a Known,
    done: Done,
    /// Location of the document that defines each object.
    sources: HashMap<Key, Origin>,
    /// Kinds of the applied definitions.
    defined: HashSet<GroupVersionKind>,
    /// Kinds of applied definitions that were not served in time.
    missed: HashMap<GroupVersionKind, Refusal>,
}

pub(crate) fn definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Applies the documents that are not known to be applied.
pub(crate) async fn run(
    registry: &Registry,
    requests: &dyn Requests,
    record: &mut Record,
    reading: &Reading,
    known: &Known,
) -> Done {
    let Sorted { own, aggregated } = other_servers::sort(registry, &reading.documents).await;
    let done = Done { faults: reading.faults.clone(), aggregated, ..Done::default() };
    let (sources, defined, missed) = (HashMap::new(), HashSet::new(), HashMap::new());
    let mut pass = Pass { registry, requests, record, known, done, sources, defined, missed };
    pass.announce(&own).await;
    let mut pending: Vec<&Document> = own.iter().collect();
    let mut failed = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let before = pass.writes();
        failed = pass.round(&pending).await;
        pending = failed.iter().map(|(document, _)| *document).collect();
        if failed.is_empty() || pass.writes() == before {
            break;
        }
    }
    let may_pass = failed.iter().any(|(_, refusal)| refusal.passes);
    let faults = failed.into_iter().map(|(document, refusal)| document.fault(refusal.message));
    pass.done.faults.extend(faults);
    pass.await_definitions(&own).await;
    let may_pass = may_pass || pass.missed.values().any(|refusal| refusal.passes);
    pass.done.is_stuck = !pass.done.faults.is_empty() && !may_pass && pass.writes() == 0;
    pass.done
}

impl<'a> Pass<'a> {
    fn writes(&self) -> usize {
        self.done.created + self.done.changed
    }

    /// Records the resources that are already known in one write; others are recorded when they are applied.
    async fn announce(&mut self, documents: &[Document]) {
        let resources = documents.iter().filter_map(|document| apply::place(self.registry, document));
        let resources: Vec<GroupResource> = resources.map(|place| place.key.resource).collect();
        if let Err(status) = self.record.add(self.registry, resources).await {
            tracing::debug!(error = %status, "cannot record the resources of manifests");
        }
    }

    async fn round<'d>(&mut self, pending: &[&'d Document]) -> Vec<(&'d Document, Refusal)> {
        let mut failed = Vec::new();
        for document in pending {
            if let Err(refusal) = self.one(document).await {
                failed.push((*document, refusal));
            }
        }
        failed
    }

    async fn one(&mut self, document: &Document) -> Result<(), Refusal> {
        let place = self.place(document).await?;
        let source = self.sources.entry(place.key.clone()).or_insert_with(|| document.origin.clone());
        if *source != document.origin {
            return Err(Refusal::lasting(format!(
                "duplicate of the object in {source}, which takes precedence"
            )));
        }
        if self.is_known(document, &place).await? {
            self.done.skipped += 1;
        } else {
            let resource = place.key.resource.clone();
            self.record.add(self.registry, [resource]).await.map_err(|status| Refusal::from(&*status))?;
            let applied = apply::apply(self.registry, self.requests, document, &place).await?;
            self.done.warnings.extend(applied.warnings.iter().map(|warning| document.fault(warning)));
            match applied.outcome {
                Outcome::Created => self.done.created += 1,
                Outcome::Changed => self.done.changed += 1,
                Outcome::Unchanged => self.done.unchanged += 1,
            }
        }
        if place.key.resource == definitions() {
            self.defined.extend(kinds_of(&document.object));
        }
        self.done.applied.insert(place.key, document.digest.clone());
        Ok(())
    }

    /// Returns true if the document was applied without a change since, and its object still exists if that must be checked.
    async fn is_known(&self, document: &Document, place: &Place) -> Result<bool, Refusal> {
        let is_known = self.known.applied.get(&place.key) == Some(&document.digest);
        Ok(is_known && (!self.known.is_doubtful || apply::stays(self.registry, place).await?))
    }

    /// Returns the target of a document. Waits for kinds whose definition was applied.
    async fn place(&mut self, document: &Document) -> Result<Place, Refusal> {
        if let Some(place) = apply::place(self.registry, document) {
            return Ok(place);
        }
        let kind = &document.kind;
        if self.defined.contains(kind) && !self.missed.contains_key(kind) {
            self.await_kinds(std::slice::from_ref(kind)).await;
        }
        let not_served = || match self.missed.get(kind) {
            Some(why) => why.clone(),
            None => {
                let version = document.object.api_version();
                Refusal::lasting(format!("this server does not serve kind {} of {version}", kind.kind))
            }
        };
        apply::place(self.registry, document).ok_or_else(not_served)
    }

    /// Waits until the definitions of the folder are served. A definition that is not served in time is a fault.
    async fn await_definitions(&mut self, documents: &[Document]) {
        let kinds: Vec<_> =
            self.defined.iter().filter(|kind| !self.missed.contains_key(*kind)).cloned().collect();
        self.await_kinds(&kinds).await;
        for document in documents.iter().filter(|document| document.kind.group == definitions().group) {
            let missed = kinds_of(&document.object).into_iter().find_map(|kind| self.missed.get(&kind));
            if let Some(why) = missed {
                self.done.faults.push(document.fault(&why.message));
            }
        }
    }

    async fn await_kinds(&mut self, kinds: &[GroupVersionKind]) {
        let until = Instant::now() + PATIENCE;
        for kind in kinds {
            let served = timeout_at(until, self.is_served(kind)).await;
            if served != Ok(true) {
                let why = not_served(self.registry, kind);
                self.missed.insert(kind.clone(), why);
            }
        }
    }

    /// Waits until a kind is served. Returns false if the store closes.
    async fn is_served(&self, kind: &GroupVersionKind) -> bool {
        let is_served = || self.registry.objects().by_kind(kind).is_some();
        if is_served() {
            return true;
        }
        let Ok(mut followed) = self.registry.follow(&definitions()).await else { return false };
        while !is_served() {
            if followed.changes.next().await.is_none() {
                return false;
            }
        }
        true
    }
}

/// Returns the reason why a kind is not served, according to its definition.
fn not_served(registry: &Registry, kind: &GroupVersionKind) -> Refusal {
    let versions = registry.version_statuses(&kind.group_version());
    let failing = versions.into_iter().find(|version| !version.serves);
    match failing {
        Some(version) => {
            let message = format!("{} is not served: {}", version.definition, version.message);
            // Name conflicts last until a user changes a definition; other problems are temporary.
            Refusal { message, passes: !version.reason.ends_with("Conflict"), code: 0 }
        }
        None => Refusal::passing(format!("kind {} is not served within {} s", kind.kind, PATIENCE.as_secs())),
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
