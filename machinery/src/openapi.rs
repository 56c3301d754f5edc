//! OpenAPI version 2 as needed for merging: named parts of JSON text, and the references between them.
//!
//! Parts stay text, so that documents of many megabytes are merged without building a tree. The text is canonical (compact,
//! like the output of `serde_json`); [`SpecV2::canonical`] converts foreign documents to this form.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::object::{NotAnObject, Object, is_deeper};

/// Levels of the OpenAPI v2 document of a backend.
///
/// Facades encode the merged document as protobuf with `serde_json`'s limit, so a deeper part would make the whole document
/// unavailable to clients.
///
/// Limit (Backends): the backend's part is omitted.
const MAX_DEPTH: usize = 127;

/// Named parts of JSON text, in order.
pub type RawMembers = IndexMap<String, Box<RawValue>>;

/// Parts of a version 2 document that are merged; other parts of a foreign document are dropped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpecV2 {
    /// Path items by path.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub paths: RawMembers,
    /// Schemas by type name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub definitions: RawMembers,
    /// Shared parameters by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub parameters: RawMembers,
}

/// Section to which a reference points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// `#/definitions/`
    Definitions,
    /// `#/parameters/`
    Parameters,
}

impl Section {
    const ALL: [Self; 2] = [Self::Definitions, Self::Parameters];

    fn prefix(self) -> &'static str {
        match self {
            Self::Definitions => r##""$ref":"#/definitions/"##,
            Self::Parameters => r##""$ref":"#/parameters/"##,
        }
    }
}

/// Returns the references in canonical JSON text: section and name, in order of appearance.
pub fn references(text: &str) -> impl Iterator<Item = (Section, &str)> {
    Section::ALL.into_iter().flat_map(move |section| {
        text.match_indices(section.prefix()).filter_map(move |(offset, prefix)| {
            let rest = &text[offset + prefix.len()..];
            Some((section, &rest[..rest.find('"')?]))
        })
    })
}

/// Renames references in a text. Returns `None` if there is nothing to rename.
#[must_use]
pub fn rename(text: &str, section: Section, names: &HashMap<String, String>) -> Option<String> {
    let mut renamed = String::new();
    let mut done = 0;
    for (offset, prefix) in text.match_indices(section.prefix()) {
        let start = offset + prefix.len();
        let Some(length) = text[start..].find('"') else { break };
        if let Some(to) = names.get(&text[start..start + length]) {
            renamed.push_str(&text[done..start]);
            renamed.push_str(to);
            done = start + length;
        }
    }
    (done > 0).then(|| renamed + &text[done..])
}

impl SpecV2 {
    /// Parses a document.
    ///
    /// # Errors
    /// The text is not a JSON object of this structure.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        portico_gostd::json::from_slice(json)
    }

    /// Parses a foreign document and converts its text to canonical form.
    ///
    /// # Errors
    /// The text is not a JSON object of this structure, or has more than 127 levels.
    pub fn canonical(json: &[u8]) -> Result<Self, NotAnObject> {
        if is_deeper(json, MAX_DEPTH) {
            return Err(serde_json::Error::custom(format!("more than {MAX_DEPTH} levels")).into());
        }
        let object = Object::from_json(json)?;
        Ok(portico_gostd::json::from_slice(&object.to_json())?)
    }

    /// Encodes the document as compact JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        // Maps with string keys can always be encoded.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Retains the paths for which `keep` returns true, and drops parts that only the removed paths referred to. Parts that no
    /// path referred to are retained.
    pub fn retain_paths(&mut self, keep: impl Fn(&str) -> bool) {
        let before = self.reachable();
        self.paths.retain(|path, _| keep(path));
        let after = self.reachable();
        let is_kept = |section: Section, name: &str| {
            let reference = (section, name.to_owned());
            after.contains(&reference) || !before.contains(&reference)
        };
        self.definitions.retain(|name, _| is_kept(Section::Definitions, name));
        self.parameters.retain(|name, _| is_kept(Section::Parameters, name));
    }

    /// Returns everything that paths refer to, directly or indirectly.
    fn reachable(&self) -> HashSet<(Section, String)> {
        let owned = |(section, name): (Section, &str)| (section, name.to_owned());
        let mut open: Vec<_> =
            self.paths.values().flat_map(|piece| references(piece.get())).map(owned).collect();
        let mut found = HashSet::new();
        while let Some(reference) = open.pop() {
            let pieces = match reference.0 {
                Section::Definitions => &self.definitions,
                Section::Parameters => &self.parameters,
            };
            let piece = pieces.get(&reference.1).map(|p| p.get()).unwrap_or_default();
            if found.insert(reference) {
                open.extend(references(piece).map(owned));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_sections_of_a_document_are_empty() {
        let json = br#"{"swagger":"2.0","paths":{"/a":{},"/b":null},"definitions":null,"parameters":null}"#;
        for spec in [SpecV2::parse(json).unwrap(), SpecV2::canonical(json).unwrap()] {
            assert_eq!((spec.paths.len(), spec.definitions.len(), spec.parameters.len()), (1, 0, 0));
        }
    }

    fn spec() -> SpecV2 {
        SpecV2::canonical(
            br##"{"swagger": "2.0", "paths": {
                "/apis/a/v1/x": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/X"}}}}},
                "/apis/b/v1/y": {"parameters": [{"$ref": "#/parameters/p"}], "get": {"schema": {"$ref": "#\/definitions\/Y"}}}},
              "definitions": {"X": {"properties": {"z": {"$ref": "#/definitions/Z"}}}, "Y": {"properties": {"y": {"$ref": "#/definitions/Y"}}},
                "Z": {}, "Loose": {}}, "parameters": {"p": {"name": "p"}}}"##,
        )
        .unwrap()
    }

    #[test]
    fn parts_used_only_by_dropped_paths_are_dropped() {
        let mut spec = spec();
        spec.retain_paths(|path| path.starts_with("/apis/a/v1/"));
        assert_eq!(spec.paths.keys().collect::<Vec<_>>(), ["/apis/a/v1/x"]);
        assert_eq!(spec.definitions.keys().collect::<Vec<_>>(), ["X", "Z", "Loose"]);
        assert!(spec.parameters.is_empty());
    }

    #[test]
    fn only_references_are_renamed() {
        let names = HashMap::from([("Y".to_owned(), "Y_v2".to_owned())]);
        let text = r##"{"$ref":"#/definitions/Y","d":"\"$ref\":\"#/definitions/Y\"","e":{"$ref":"#/definitions/YY"}}"##;
        let want = text.replacen("definitions/Y\"", "definitions/Y_v2\"", 1);
        assert_eq!(rename(text, Section::Definitions, &names), Some(want));
        assert_eq!(rename(text, Section::Parameters, &names), None);
        assert_eq!(references(text).map(|(_, n)| n).collect::<Vec<_>>(), ["Y", "YY"]);
    }
}
