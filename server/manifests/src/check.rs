//! What a folder would come to on a server without anything else (`portico config check`).

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

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that were read.
    pub files: usize,
    /// Documents in them; lists count as their items.
    pub documents: usize,
    /// Documents that were not checked: other API servers keep their objects.
    pub unchecked: usize,
    /// What is wrong, in the order of the folder.
    pub findings: Vec<Finding>,
}

/// Something that is wrong, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it would not be applied.
    pub is_error: bool,
    /// Below the folder.
    pub file: String,
    /// Where the document begins, from 1.
    pub line: usize,
    /// Which document of the file, from 1.
    pub document: usize,
    /// Which item of a list, from 1.
    pub item: Option<usize>,
    /// Kind, namespace and name, as far as they are known.
    pub object: String,
    /// For people.
    pub message: String,
}

impl Finding {
    fn of(fault: Fault, is_error: bool) -> Self {
        let Fault { origin, object, message } = fault;
        let (file, line, document, item) = (origin.file, origin.line, origin.document, origin.item);
        Self { is_error, file, line, document, item, object, message }
    }
}

/// Applies the folder to a server that is there for this alone; namespaces that are nowhere are made first.
///
/// # Errors
/// When the folder cannot be read, or the server's own objects.
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

/// Makes the namespaces that objects name and nobody makes; answers which.
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
            // What is no name of a namespace is refused where it stands.
            Err(status) if matches!(status.reason(), Reason::AlreadyExists | Reason::Invalid) => {}
            Err(status) => return Err(status.message),
        }
    }
    Ok(made)
}
