//! What is known of the folder now, for readiness and for Explain.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::object::cut_at;
use tokio::sync::watch;

use crate::document::Fault;
use crate::reading::Reading;

/// Faults that a message names.
const MAX_NAMED: usize = 5;
/// Bytes of one of them.
const MAX_FAULT_BYTES: usize = 400;

/// See the module. Cheap to clone.
#[derive(Clone, Default)]
pub struct State(Arc<Mutex<Known>>);

/// Why the folder has not been applied yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unapplied {
    /// For people.
    pub problem: String,
    /// Whether it stays so until somebody mends the folder, or what it needs.
    pub is_final: bool,
}

#[derive(Default)]
struct Known {
    /// Told of what is wrong before all of it was applied once.
    unapplied: watch::Sender<Option<Unapplied>>,
    /// Whether all of it was applied once.
    was_applied: bool,
    /// What is wrong now; nothing before the first pass and when all is well.
    problem: Option<String>,
    /// By name.
    api_services: HashMap<String, ManifestOf>,
}

/// The manifest that an object comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestOf {
    /// File and document.
    pub from: String,
    /// Why it is not applied as it is now.
    pub error: Option<String>,
}

impl State {
    /// Whether all of it was applied once; else what is wrong.
    ///
    /// # Errors
    /// For people.
    pub fn check(&self) -> Result<(), String> {
        let known = self.0.lock();
        match (known.was_applied, &known.problem) {
            (true, _) => Ok(()),
            (false, Some(problem)) => Err(problem.clone()),
            (false, None) => Err("the folder of manifests has not been applied yet".to_owned()),
        }
    }

    /// What is wrong with a later change.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let known = self.0.lock();
        known.problem.clone().filter(|_| known.was_applied)
    }

    /// What is wrong before all of it was applied once, whenever that changes.
    #[must_use]
    pub fn unapplied(&self) -> watch::Receiver<Option<Unapplied>> {
        self.0.lock().unapplied.subscribe()
    }

    /// The manifest of an APIService.
    #[must_use]
    pub fn api_service(&self, name: &str) -> Option<ManifestOf> {
        self.0.lock().api_services.get(name).cloned()
    }

    /// The folder cannot be read.
    pub(crate) fn unreadable(&self, error: &str) {
        let mut known = self.0.lock();
        known.problem = Some(error.to_owned());
        known.tell(true);
    }

    /// A pass has ended.
    pub(crate) fn passed(&self, reading: &Reading, faults: &[Fault], is_final: bool) {
        let documents = reading.documents.len() + reading.faults.len();
        let error = |document: &crate::document::Document| {
            faults.iter().find(|fault| fault.origin == document.origin).map(|fault| fault.message.clone())
        };
        let services = reading.documents.iter().filter(|document| {
            document.kind.kind == "APIService" && document.kind.group == "apiregistration.k8s.io"
        });
        let services = services.map(|document| {
            let manifest = ManifestOf { from: document.origin.to_string(), error: error(document) };
            (document.object.name().to_owned(), manifest)
        });
        let mut known = self.0.lock();
        known.api_services = services.collect();
        known.was_applied |= faults.is_empty();
        known.problem = (!faults.is_empty()).then(|| problem(documents, faults));
        known.tell(is_final);
    }
}

impl Known {
    fn tell(&self, is_final: bool) {
        let problem = self.problem.clone().filter(|_| !self.was_applied);
        let told = problem.map(|problem| Unapplied { problem, is_final });
        self.unapplied.send_if_modified(|before| {
            let is_new = *before != told;
            *before = told;
            is_new
        });
    }
}

/// The first faults in one line.
fn problem(documents: usize, faults: &[Fault]) -> String {
    let mut text = format!("{} of {documents} documents are not applied", faults.len());
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
