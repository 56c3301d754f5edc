//! State of the manifests folder, for readiness and Explain.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::object::cut_at;
use tokio::sync::watch;

use crate::content::FolderContent;
use crate::document::{Document, Fault};
use crate::foreign_servers::is_api_service;

/// Faults that `/readyz/manifests` names.
///
/// Limit (Manifests): the rest is counted.
const MAX_NAMED: usize = 5;
/// Message about documents that cannot be applied yet.
const WAITING_MESSAGE: &str = "documents wait for their API servers";
/// Bytes of one fault that `/readyz/manifests` shows.
///
/// Limit (Manifests, bytes): the rest is omitted.
const MAX_FAULT_BYTES: usize = 400;

/// Shared state of the folder. Cheap to clone.
#[derive(Clone, Default)]
pub struct FolderState(Arc<Mutex<StateInner>>);

/// Reason why the folder has not been applied completely yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnappliedFolder {
    /// Human-readable message.
    pub problem: String,
    /// True if a retry cannot succeed until a user changes the folder or its dependencies.
    pub is_final: bool,
}

#[derive(Default)]
struct StateInner {
    /// Reports problems until the folder has been applied completely once.
    unapplied: watch::Sender<Option<UnappliedFolder>>,
    /// True if all documents were applied at least once.
    was_applied: bool,
    /// Current problem; `None` before the first pass and if there is none.
    problem: Option<String>,
    /// Manifests of APIServices, by name.
    api_services: HashMap<String, ApiServiceManifest>,
    aggregated: AggregatedState,
}

/// Manifest of an APIService, and problems of documents for the server behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiServiceManifest {
    /// File and document; empty if the APIService is not from the folder.
    pub origin: String,
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
    fn object_problems(&self, api_service: &str) -> Option<String> {
        let (documents, faults) = self.by_service.get(api_service)?;
        (!faults.is_empty()).then(|| format_problem(*documents, "of its objects are not applied", faults))
    }

    fn problems(&self) -> impl Iterator<Item = String> {
        let texts =
            [("documents are refused by other API servers", &self.refused), (WAITING_MESSAGE, &self.waiting)];
        let non_empty = texts.into_iter().filter(|(_, faults)| !faults.is_empty());
        non_empty.map(|(text, faults)| format_problem(self.documents, text, faults))
    }
}

impl FolderState {
    /// Checks that all documents were applied at least once.
    ///
    /// # Errors
    /// Returns the current problem as a human-readable message.
    pub fn check(&self) -> Result<(), String> {
        let inner = self.0.lock();
        match (inner.was_applied, &inner.problem) {
            (true, _) => Ok(()),
            (false, Some(problem)) => Err(problem.clone()),
            (false, None) => Err("the manifests folder has not been applied yet".to_owned()),
        }
    }

    /// Returns problems of later changes, or of documents for other servers.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let inner = self.0.lock();
        let problems: Vec<String> =
            inner.problem.clone().into_iter().chain(inner.aggregated.problems()).collect();
        (inner.was_applied && !problems.is_empty()).then(|| problems.join("; "))
    }

    /// Returns a receiver of problems until all documents were applied once.
    #[must_use]
    pub fn unapplied(&self) -> watch::Receiver<Option<UnappliedFolder>> {
        self.0.lock().unapplied.subscribe()
    }

    /// Returns the manifest of an APIService, or problems of documents for the server behind it.
    #[must_use]
    pub fn api_service(&self, name: &str) -> Option<ApiServiceManifest> {
        let inner = self.0.lock();
        let manifest = inner.api_services.get(name).cloned();
        match inner.aggregated.object_problems(name) {
            None => manifest,
            objects => Some(ApiServiceManifest { objects, ..manifest.unwrap_or_default() }),
        }
    }

    /// Stores the state of documents for other servers.
    pub(crate) fn set_aggregated(&self, mut aggregated: AggregatedState) {
        let location = |fault: &Fault| (fault.origin.file.clone(), fault.origin.document, fault.origin.item);
        aggregated.waiting.sort_by_cached_key(location);
        aggregated.refused.sort_by_cached_key(location);
        self.0.lock().aggregated = aggregated;
    }

    /// Records that the folder cannot be read.
    pub(crate) fn set_unreadable(&self, error: &str) {
        let mut inner = self.0.lock();
        inner.problem = Some(error.to_owned());
        inner.publish(true);
    }

    /// Records the result of a pass.
    pub(crate) fn set_pass_result(&self, reading: &FolderContent, faults: &[Fault], is_final: bool) {
        let documents = reading.documents.len() + reading.faults.len();
        let error = |document: &Document| {
            faults.iter().find(|fault| fault.origin == document.origin).map(|fault| fault.message.clone())
        };
        let services = reading.documents.iter().filter(|document| is_api_service(document));
        let services = services.map(|document| {
            let (origin, error) = (document.origin.to_string(), error(document));
            let manifest = ApiServiceManifest { origin, error, objects: None };
            (document.object.name().to_owned(), manifest)
        });
        let mut inner = self.0.lock();
        inner.api_services = services.collect();
        inner.was_applied |= faults.is_empty();
        inner.problem =
            (!faults.is_empty()).then(|| format_problem(documents, "documents are not applied", faults));
        inner.publish(is_final);
    }
}

impl StateInner {
    fn publish(&self, is_final: bool) {
        let problem = self.problem.clone().filter(|_| !self.was_applied);
        let unapplied = problem.map(|problem| UnappliedFolder { problem, is_final });
        self.unapplied.send_if_modified(|previous| {
            let is_new = *previous != unapplied;
            *previous = unapplied;
            is_new
        });
    }
}

/// Formats the number of faults and the first of them in one line.
fn format_problem(documents: usize, problem: &str, faults: &[Fault]) -> String {
    let mut text = format!("{} of {documents} {problem}", faults.len());
    for (index, fault) in faults.iter().take(MAX_NAMED).enumerate() {
        let separator = if index == 0 { ": " } else { "; " };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{}", cut_at(fault.to_string(), MAX_FAULT_BYTES));
    }
    if faults.len() > MAX_NAMED {
        let _ = write!(text, "; and {} more", faults.len() - MAX_NAMED);
    }
    text
}
