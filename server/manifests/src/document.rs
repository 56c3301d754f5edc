//! A document: one object as written in a file, with its location.

use std::fmt;

use portico_machinery::digest::sha256_hex;
use portico_machinery::{GroupVersionKind, Object};

use crate::split::DocumentText;

/// Location of a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// Path of the file, relative to the folder.
    pub(crate) file: String,
    /// Number of the document within the file, from 1.
    pub(crate) document: usize,
    /// Number of the list item, from 1.
    pub(crate) item: Option<usize>,
    /// Line of the file at which the document begins, from 1.
    pub(crate) line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// A problem with a document, and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) origin: Origin,
    /// Kind, namespace and name, if known.
    pub(crate) object: String,
    pub(crate) message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if !self.object.is_empty() {
            write!(f, ", {}", self.object)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// An object to apply.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) origin: Origin,
    pub(crate) kind: GroupVersionKind,
    pub(crate) object: Object,
    /// Text of the document; `None` for items of lists.
    pub(crate) text: Option<String>,
    /// SHA-256 digest of the content.
    pub(crate) digest: String,
}

impl Document {
    /// Returns kind, namespace and name for messages.
    pub(crate) fn display_name(&self) -> String {
        display_name(&self.object)
    }

    /// Creates a fault of this document, with the message in one line.
    pub(crate) fn fault(&self, message: impl fmt::Display) -> Fault {
        let message = message.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
        Fault { origin: self.origin.clone(), object: self.display_name(), message }
    }
}

/// Formats kind, namespace and name for messages, omitting empty parts.
fn display_name(object: &Object) -> String {
    let (kind, namespace, name) = (object.kind(), object.namespace(), object.name());
    let text = match (name.is_empty(), namespace.is_empty()) {
        (true, _) => kind.to_owned(),
        (false, true) => format!("{kind} {name}"),
        (false, false) => format!("{kind} {namespace}/{name}"),
    };
    text.trim_start().to_owned()
}

/// Parses a document: one object, or the items of a list.
pub(crate) fn parse_document(
    file: &str,
    document: usize,
    part: &DocumentText<'_>,
) -> Vec<Result<Document, Fault>> {
    let origin = Origin { file: file.to_owned(), document, item: None, line: part.line };
    let object = match parse(part) {
        Ok(object) => object,
        Err(message) => return vec![Err(Fault { origin, object: String::new(), message })],
    };
    if !is_list(&object) {
        let digest = sha256_hex(part.text.as_bytes());
        return vec![validate(origin, object, Some(part.text.to_owned()), digest)];
    }
    let item = |(index, item): (usize, Option<Object>)| {
        let origin = Origin { item: Some(index + 1), ..origin.clone() };
        let Some(object) = item else {
            let message = "an item of a list must be an object".to_owned();
            return Err(Fault { origin, object: String::new(), message });
        };
        let digest = sha256_hex(&object.to_json());
        validate(origin, object, None, digest)
    };
    items(&object).enumerate().map(item).collect()
}

/// Parses a document that is a list. Returns its items, with `None` for items that are not objects. Returns `None` if the
/// document is not a list.
#[must_use]
pub fn list_items(text: &str) -> Option<Vec<Option<Object>>> {
    let object = portico_schema::parse_object(text).ok().filter(is_list)?;
    Some(items(&object).collect())
}

fn items(list: &Object) -> impl Iterator<Item = Option<Object>> {
    list.at(&["items"]).items().map(|item| item.node().and_then(|node| Object::from_node(node).ok()))
}

/// Parses the object. Line numbers in errors refer to the file.
fn parse(part: &DocumentText<'_>) -> Result<Object, String> {
    portico_schema::parse_object(part.text).or_else(|_| {
        // Parses again with leading empty lines, so that the parser reports line numbers of the file.
        let text = format!("{}{}", "\n".repeat(part.line - 1), part.text);
        portico_schema::parse_object(&text)
    })
}

fn is_list(object: &Object) -> bool {
    object.kind().ends_with("List") && object.name().is_empty() && object.at(&["items"]).is_present()
}

fn validate(origin: Origin, object: Object, text: Option<String>, digest: String) -> Result<Document, Fault> {
    let fault = |message: &str| {
        Err(Fault { origin: origin.clone(), object: display_name(&object), message: message.to_owned() })
    };
    if let Some(path) = non_string_field(&object) {
        return fault(&format!("{} must be a string", path.join(".")));
    }
    if object.kind().is_empty() || object.api_version().is_empty() || object.name().is_empty() {
        return fault("a manifest needs apiVersion, kind and metadata.name");
    }
    match object.gvk() {
        Some(kind) => Ok(Document { origin, kind, object, text, digest }),
        None => fault("apiVersion must be VERSION or GROUP/VERSION"),
    }
}

/// Returns the identifying field that has a value other than a string, such as `name: 5` or an unquoted `yes`.
fn non_string_field(object: &Object) -> Option<&'static [&'static str]> {
    const FIELDS: [&[&str]; 4] =
        [&["apiVersion"], &["kind"], &["metadata", "name"], &["metadata", "namespace"]];
    let is_non_string = |path: &&&[&str]| {
        let value = object.at(path);
        value.is_present() && value.opt_str().is_none()
    };
    FIELDS.iter().find(is_non_string).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_fault(text: &str) -> String {
        let part = DocumentText { line: 7, text };
        parse_document("a.yaml", 2, &part).into_iter().find_map(Result::err).unwrap().to_string()
    }

    #[test]
    fn lists_are_parsed_as_their_items() {
        let text = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: x}}, 7]}";
        let read = parse_document("a.yaml", 1, &DocumentText { line: 1, text });
        assert_eq!(read[0].as_ref().unwrap().origin.to_string(), "a.yaml, document 1, item 1");
        let refused = read[1].as_ref().unwrap_err().to_string();
        assert_eq!(refused, "a.yaml, document 1, item 2: an item of a list must be an object");
    }

    #[test]
    fn invalid_manifests_are_reported_with_their_location() {
        let refused = first_fault("kind: ConfigMap\nmetadata: {name: x}\n");
        let needs = "a.yaml, document 2, ConfigMap x: a manifest needs apiVersion, kind and metadata.name";
        assert_eq!(refused, needs);
        for (text, expected) in [
            ("apiVersion: 1\nkind: A\nmetadata: {name: x}\n", "A x: apiVersion"),
            ("apiVersion: v1\nkind: yes\nmetadata: {name: x}\n", "x: kind"),
            ("apiVersion: v1\nkind: A\nmetadata: {name: 5}\n", "A: metadata.name"),
            ("apiVersion: v1\nkind: A\nmetadata: {name: x, namespace: 7}\n", "A x: metadata.namespace"),
        ] {
            let refused = first_fault(text);
            assert_eq!(refused, format!("a.yaml, document 2, {expected} must be a string"));
        }
        let refused = first_fault("a: b\nc: [\n");
        assert!(
            refused.starts_with("a.yaml, document 2: error converting YAML to JSON: yaml: line 8"),
            "{refused}"
        );
    }
}
