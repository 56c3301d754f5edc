//! Reads manifests from YAML and JSON files.

use std::io::Read;
use std::path::{Path, PathBuf};

use portico_gostd::os::error_text;
use portico_machinery::Object;
use portico_server::list_items;
use serde::Deserialize;

/// Manifest in a file.
#[derive(Debug)]
pub(crate) struct ManifestDocument {
    /// File and number of the document, for messages.
    pub(crate) origin: String,
    /// Text of the manifest.
    pub(crate) manifest: Vec<u8>,
    pub(crate) media_type: &'static str,
    /// Kind and name of the manifest's object.
    pub(crate) head: ObjectHead,
}

/// Fields that identify the object of a manifest.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ObjectHead {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) metadata: Metadata,
}

/// Name and namespace of a manifest's object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// Error of reading manifests. The message is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("{file}: {}", error_text(.source))]
    File { file: String, source: std::io::Error },
    #[error("{from}: {reason}")]
    Document { from: String, reason: String },
}

/// Reads all objects in these files, in order, with lists replaced by their items; `-` is standard input.
pub(crate) fn objects(files: &[PathBuf]) -> Result<Vec<ManifestDocument>, DocumentError> {
    let mut objects = Vec::new();
    for document in read(files)? {
        let text = std::str::from_utf8(&document.manifest).unwrap_or_default();
        match document.head.kind.ends_with("List").then(|| list_items(text)).flatten() {
            None => objects.push(document),
            Some(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    objects.push(item_document(&document, at + 1, item)?);
                }
            }
        }
    }
    Ok(objects)
}

/// Returns an item of a list as a separate document.
fn item_document(
    list: &ManifestDocument,
    at: usize,
    item: Option<Object>,
) -> Result<ManifestDocument, DocumentError> {
    let origin = format!("{}, item {at}", list.origin);
    let unreadable = |reason: String| DocumentError::Document { from: origin.clone(), reason };
    let item = item.ok_or_else(|| unreadable("an item of a list must be an object".to_owned()))?;
    let manifest = item.to_json();
    let head = serde_json::from_slice(&manifest).map_err(|error| unreadable(error.to_string()))?;
    Ok(ManifestDocument { origin, manifest, media_type: "application/json", head })
}

/// Reads all documents in these files, in order; `-` is standard input.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<ManifestDocument>, DocumentError> {
    let mut manifests = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let text = text(file).map_err(|source| DocumentError::File { file: name.clone(), source })?;
        for (at, document) in split(&text).into_iter().enumerate() {
            let origin = format!("{name}, document {}", at + 1);
            // JSON may be nested more deeply than the YAML parser accepts.
            let head = serde_json::from_str(document).or_else(|_| serde_saphyr::from_str(document));
            let head: Option<ObjectHead> = head.map_err(|error| {
                // Further lines of the parser's message quote the manifest, and are omitted.
                let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
                DocumentError::Document { from: origin.clone(), reason }
            })?;
            let json = document.trim_start().starts_with('{');
            let media_type = if json { "application/json" } else { "application/yaml" };
            let (manifest, head) = (document.as_bytes().to_vec(), head.unwrap_or_default());
            manifests.push(ManifestDocument { origin, manifest, media_type, head });
        }
    }
    Ok(manifests)
}

fn text(file: &Path) -> std::io::Result<String> {
    if file != Path::new("-") {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// Splits a text at lines of three dashes. Empty documents are left out.
fn split(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            documents.push(&text[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    documents.push(&text[start..]);
    let has_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    documents.retain(|document| document.lines().any(has_content));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_at_dashes_into_documents_that_are_not_empty() {
        let text = "# one\n---\nkind: A\n---\n\n# nothing\n--- # two\nkind: B\n";
        assert_eq!(split(text), ["kind: A\n", "kind: B\n"]);
        assert_eq!(split("kind: A"), ["kind: A"]);
    }
}
