//! Checks a folder against a server without other content (`portico config check`).

use std::collections::BTreeSet;
use std::sync::Arc;

use portico_kit::tasks::blocking;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason};
use portico_registry::{CreateOptions, Registry};

use crate::apply;
use crate::content;
use crate::document::{Document, Fault};
use crate::identity;
use crate::pass;
use crate::record::ResourceRecord;
use crate::settings::Settings;

/// Result of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderReport {
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
    fn from_fault(fault: Fault, is_error: bool) -> Self {
        let Fault { origin, object, message } = fault;
        let (file, line, document, item) = (origin.file, origin.line, origin.document, origin.item);
        Self { is_error, file, line, document, item, object, message }
    }
}

/// Applies the folder to a server that exists only for the check. Namespaces that the folder does not contain are created first.
///
/// # Errors
/// Returns an error if the folder or the server's own objects cannot be read.
pub async fn check(settings: Settings, registry: &Registry) -> Result<FolderReport, String> {
    let settings = Arc::new(settings);
    let read_result = blocking(move || content::read(&settings)).await;
    let content = read_result.ok_or("reading was interrupted")?.map_err(|error| error.to_string())?;
    let created = create_missing_namespaces(registry, &content.documents).await?;
    let mut record = ResourceRecord::load(registry).await.map_err(|status| status.message)?;
    let pass_result =
        pass::run(registry, registry, &mut record, &content, &pass::AppliedDocuments::default()).await;
    let in_created_namespaces = content.documents.iter().filter(|document| {
        created.contains(document.object.namespace())
            && apply::local_target(registry, document).is_some_and(|target| target.is_namespaced())
    });
    let namespace_warnings = in_created_namespaces.map(|document| {
        let namespace = document.object.namespace();
        document.fault(format!("namespace {namespace:?} is not in the folder and must exist already"))
    });
    let errors = pass_result.faults.into_iter().map(|fault| Finding::from_fault(fault, true));
    let warnings =
        namespace_warnings.chain(pass_result.warnings).map(|fault| Finding::from_fault(fault, false));
    let mut findings: Vec<Finding> = errors.chain(warnings).collect();
    findings.sort_by_cached_key(|f| (std::path::PathBuf::from(&f.file), f.document, f.item, !f.is_error));
    let documents = content.documents.len() + content.faults.len();
    Ok(FolderReport {
        files: content.files.len(),
        documents,
        unchecked: pass_result.aggregated.len(),
        findings,
    })
}

/// Creates the namespaces that objects name and the folder does not contain. Returns their names.
async fn create_missing_namespaces(
    registry: &Registry,
    documents: &[Document],
) -> Result<BTreeSet<String>, String> {
    let is_namespace =
        |document: &&Document| document.kind.kind == "Namespace" && document.kind.group.is_empty();
    let in_folder: BTreeSet<&str> =
        documents.iter().filter(is_namespace).map(|document| document.object.name()).collect();
    let namespaces: BTreeSet<&str> = documents.iter().map(|document| document.object.namespace()).collect();
    let (mut created, context) = (BTreeSet::new(), identity::context());
    for name in namespaces.into_iter().filter(|name| !name.is_empty() && !in_folder.contains(name)) {
        let mut namespace = Object::new(&GroupVersion::new("", "v1").kind("Namespace"));
        namespace.set(&["metadata", "name"], name);
        let resource = GroupResource::new("", "namespaces");
        match registry.create(&context, &resource, namespace, &CreateOptions::default()).await {
            Ok(_) => {
                created.insert(name.to_owned());
            }
            // Invalid names are refused later, with the location of the document.
            Err(status) if matches!(status.reason(), Reason::AlreadyExists | Reason::Invalid) => {}
            Err(status) => return Err(status.message),
        }
    }
    Ok(created)
}
