//! State of the manifests folder, for readiness and Explain.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::object::cut_at;
use tokio::sync::watch;

use crate::document::{Document, Fault};
use crate::other_servers::is_api_service;
use crate::reading::Reading;

/// Faults that `/readyz/manifests` names.
///
/// Limit (Manifests): the rest is counted.
const MAX_NAMED: usize = 5;
/// Message about documents that cannot be applied yet.
const WAITING: &str = "documents wait for their API servers";
/// Bytes of one fault that `/readyz/manifests` shows.
///
/// Limit (Manifests, bytes): the rest is omitted.
const MAX_FAULT_BYTES: usize = 400;

/// Shared state of the folder. Cheap to clone.
#[derive(Clone, Default)]
pub struct State(Arc<Mutex<Known>>);

/// Reason why the folder has not been applied completely yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unapplied {
    /// Human-readable message.
    pub problem: String,
    /// True if a retry cannot succeed until a user changes the folder or its dependencies.
    pub is_final: bool,
}

#[derive(Default)]
struct Known {
    /// Reports problems until the folder has been applied completely once.
    unapplied: watch::Sender<Option<Unapplied>>,
    /// True if all documents were applied at least once.
    was_applied: bool,
    /// Current problem; `None` before the first pass and if there is none.
    problem: Option<String>,
    /// Manifests of APIServices, by name.
    api_services: HashMap<String, ManifestOf>,
    aggregated: AggregatedState,
}

/// Manifest of an APIService, and problems of documents for the server behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestOf {
    /// File and document; empty if the APIService is not from the folder.
    pub from: String,
    /// Reason why the current manifest is not applied.
    pub error: Option<String>,
    /// Problems of documents whose objects the server stores.
    pub objects: Option<String>,
}

/// State of the documents for other servers.
#[derive(Debug, Default)]
pub(crate) struct AggregatedState {
    documents: usize,
    /// Documents that wait for their server.
    pub(crate) waiting: Vec<Fault>,
    /// Documents that were refused.
    pub(crate) refused: Vec<Fault>,
    /// Number of documents, and faults, by APIService.
    by_service: HashMap<String, (usize, Vec<Fault>)>,
}

impl AggregatedState {
    /// Adds the documents and faults of a group.
    pub(crate) fn add(&mut self, documents: &[Document], waiting: &[Fault], refused: &[Fault]) {
        self.documents += documents.len();
        self.waiting.extend_from_slice(waiting);
        self.refused.extend_from_slice(refused);
        let faults: HashMap<_, _> =
            refused.iter().chain(waiting).map(|fault| (&fault.origin, fault)).collect();
        for document in documents {
            let name = document.kind.group_version().api_service_name();
            let (count, unapplied) = self.by_service.entry(name).or_default();
            *count += 1;
            unapplied.extend(faults.get(&document.origin).map(|fault| (*fault).clone()));
        }
    }

    /// Returns the problems of documents for the server behind an APIService; `None` if there are none.
    fn objects_of(&self, api_service: &str) -> Option<String> {
        let (documents, faults) = self.by_service.get(api_service)?;
        (!faults.is_empty()).then(|| problem(*documents, "of its objects are not applied", faults))
    }

    fn problems(&self) -> impl Iterator<Item = String> {
        let texts = [("documents are refused by other API servers", &self.refused), (WAITING, &self.waiting)];
        let of_some = texts.into_iter().filter(|(_, faults)| !faults.is_empty());
        of_some.map(|(text, faults)| problem(self.documents, text, faults))
    }
}

impl State {
    /// Checks that all documents were applied at least once.
    ///
    /// # Errors
    /// Returns the current problem as a human-readable message.
    pub fn check(&self) -> Result<(), String> {
        let known = self.0.lock();
        match (known.was_applied, &known.problem) {
            (true, _) => Ok(()),
            (false, Some(problem)) => Err(problem.clone()),
            (false, None) => Err("the manifests folder has not been applied yet".to_owned()),
        }
    }

    /// Returns problems of later changes, or of documents for other servers.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let known = self.0.lock();
        let problems: Vec<String> =
            known.problem.clone().into_iter().chain(known.aggregated.problems()).collect();
        (known.was_applied && !problems.is_empty()).then(|| problems.join("; "))
    }

    /// Returns a receiver of problems until all documents were applied once.
    #[must_use]
    pub fn unapplied(&self) -> watch::Receiver<Option<Unapplied>> {
        self.0.lock().unapplied.subscribe()
    }

    /// Returns the manifest of an APIService, or problems of documents for the server behind it.
    #[must_use]
    pub fn api_service(&self, name: &str) -> Option<ManifestOf> {
        let known = self.0.lock();
        let manifest = known.api_services.get(name).cloned();
        match known.aggregated.objects_of(name) {
            None => manifest,
            objects => Some(ManifestOf { objects, ..manifest.unwrap_or_default() }),
        }
    }

    /// Stores the state of documents for other servers.
    pub(crate) fn visited(&self, mut aggregated: AggregatedState) {
        let place = |fault: &Fault| (fault.origin.file.clone(), fault.origin.document, fault.origin.item);
        aggregated.waiting.sort_by_cached_key(place);
        aggregated.refused.sort_by_cached_key(place);
        self.0.lock().aggregated = aggregated;
    }

    /// Records that the folder cannot be read.
    pub(crate) fn unreadable(&self, error: &str) {
        let mut known = self.0.lock();
        known.problem = Some(error.to_owned());
        known.publish(true);
    }

    /// Records the result of a pass.
    pub(crate) fn passed(&self, reading: &Reading, faults: &[Fault], is_final: bool) {
        let documents = reading.documents.len() + reading.faults.len();
        let error = |document: &Document| {
            faults.iter().find(|fault| fault.origin == document.origin).map(|fault| fault.message.clone())
        };
        let services = reading.documents.iter().filter(|document| is_api_service(document));
        let services = services.map(|document| {
            let (from, error) = (document.origin.to_string(), error(document));
            let manifest = ManifestOf { from, error, objects: None };
            (document.object.name().to_owned(), manifest)
        });
        let mut known = self.0.lock();
        known.api_services = services.collect();
        known.was_applied |= faults.is_empty();
        known.problem = (!faults.is_empty()).then(|| problem(documents, "documents are not applied", faults));
        known.publish(is_final);
    }
}

impl Known {
    fn publish(&self, is_final: bool) {
        let problem = self.problem.clone().filter(|_| !self.was_applied);
        let told = problem.map(|problem| Unapplied { problem, is_final });
        self.unapplied.send_if_modified(|before| {
            let is_new = *before != told;
            *before = told;
            is_new
        });
    }
}

/// Formats the number of faults and the first of them in one line.
fn problem(documents: usize, what: &str, faults: &[Fault]) -> String {
    let mut text = format!("{} of {documents} {what}", faults.len());
    for (at, fault) in faults.iter().take(MAX_NAMED).enumerate() {
        let separator = if at == 0 { ": " } else { "; " };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{}", cut_at(fault.to_string(), MAX_FAULT_BYTES));
    }
    if faults.len() > MAX_NAMED {
        let _ = write!(text, "; and {} more", faults.len() - MAX_NAMED);
    }
    text
}
