//! Checks a folder against a server without other content (`portico config check`).

use std::collections::BTreeSet;
use std::sync::Arc;

use portico_kit::tasks::blocking;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason};
use portico_registry::{CreateOptions, Registry};

use crate::apply;
use crate::document::{Document, Fault};
use crate::identity;
use crate::pass;
use crate::reading;
use crate::record::Record;
use crate::settings::Settings;

/// Result of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of files that were read.
    pub files: usize,
    /// Number of documents; each item of a list counts as a document.
    pub documents: usize,
    /// Number of documents that were not checked, because other API servers store their objects.
    pub unchecked: usize,
    /// Findings in the order of the folder.
    pub findings: Vec<Finding>,
}

/// An error or warning about a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// True if the document would not be applied.
    pub is_error: bool,
    /// Path of the file, relative to the folder.
    pub file: String,
    /// Line of the file at which the document begins, from 1.
    pub line: usize,
    /// Number of the document within the file, from 1.
    pub document: usize,
    /// Number of the list item, from 1.
    pub item: Option<usize>,
    /// Kind, namespace and name, if known.
    pub object: String,
    /// Human-readable message.
    pub message: String,
}

impl Finding {
    fn of(fault: Fault, is_error: bool) -> Self {
        let Fault { origin, object, message } = fault;
        let (file, line, document, item) = (origin.file, origin.line, origin.document, origin.item);
        Self { is_error, file, line, document, item, object, message }
    }
}

/// Applies the folder to a server that exists only for the check. Namespaces that the folder does not contain are created first.
///
/// # Errors
/// Returns an error if the folder or the server's own objects cannot be read.
pub async fn check(settings: Settings, registry: &Registry) -> Result<Report, String> {
    let settings = Arc::new(settings);
    let read = blocking(move || reading::read(&settings)).await;
    let reading = read.ok_or("reading was interrupted")?.map_err(|error| error.to_string())?;
    let made = make_namespaces(registry, &reading.documents).await?;
    let mut record = Record::load(registry).await.map_err(|status| status.message)?;
    let done = pass::run(registry, registry, &mut record, &reading, &pass::Known::default()).await;
    let homeless = reading.documents.iter().filter(|document| {
        made.contains(document.object.namespace())
            && apply::place(registry, document).is_some_and(|place| place.is_namespaced())
    });
    let homeless = homeless.map(|document| {
        let namespace = document.object.namespace();
        document.fault(format!("namespace {namespace:?} is not in the folder and must exist already"))
    });
    let errors = done.faults.into_iter().map(|fault| Finding::of(fault, true));
    let warnings = homeless.chain(done.warnings).map(|fault| Finding::of(fault, false));
    let mut findings: Vec<Finding> = errors.chain(warnings).collect();
    findings.sort_by_cached_key(|f| (std::path::PathBuf::from(&f.file), f.document, f.item, !f.is_error));
    let documents = reading.documents.len() + reading.faults.len();
    Ok(Report { files: reading.files.len(), documents, unchecked: done.aggregated.len(), findings })
}

/// Creates the namespaces that objects name and the folder does not contain. Returns their names.
async fn make_namespaces(registry: &Registry, documents: &[Document]) -> Result<BTreeSet<String>, String> {
    let is_namespace =
        |document: &&Document| document.kind.kind == "Namespace" && document.kind.group.is_empty();
    let in_folder: BTreeSet<&str> =
        documents.iter().filter(is_namespace).map(|document| document.object.name()).collect();
    let named: BTreeSet<&str> = documents.iter().map(|document| document.object.namespace()).collect();
    let (mut made, context) = (BTreeSet::new(), identity::context());
    for name in named.into_iter().filter(|name| !name.is_empty() && !in_folder.contains(name)) {
        let mut namespace = Object::new(&GroupVersion::new("", "v1").kind("Namespace"));
        namespace.set(&["metadata", "name"], name);
        let resource = GroupResource::new("", "namespaces");
        match registry.create(&context, &resource, namespace, &CreateOptions::default()).await {
            Ok(_) => {
                made.insert(name.to_owned());
            }
            // Invalid names are refused later, with the location of the document.
            Err(status) if matches!(status.reason(), Reason::AlreadyExists | Reason::Invalid) => {}
            Err(status) => return Err(status.message),
        }
    }
    Ok(made)
}
