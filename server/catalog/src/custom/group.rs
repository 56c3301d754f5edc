//! A group version of custom resources: its definitions, and the documents that describe them.

use std::sync::Arc;

use portico_machinery::{GroupVersion, digest};
use portico_schema::TypeSet;

use super::{Definition, openapi};
use crate::local::openapi::Words;
use crate::local::{Described, MADE_BY};

/// An immutable group version; a change creates a new one.
pub(crate) struct Group {
    group_version: GroupVersion,
    /// Definitions, sorted by resource.
    members: Vec<Arc<Definition>>,
    types: Arc<TypeSet>,
}

impl Group {
    pub fn new(group_version: GroupVersion, members: Vec<Arc<Definition>>, types: &Arc<TypeSet>) -> Self {
        Self { group_version, members, types: Arc::clone(types) }
    }

    /// Returns the name of a discovery document.
    pub fn discovery_name(&self, document: &str) -> String {
        self.name(&[document, MADE_BY], |member| member.discovery_mark().to_owned())
    }

    /// Returns the name of an OpenAPI document, which also depends on the built-in types.
    pub fn openapi_name(&self, document: &str, built_in: &str) -> String {
        self.name(&[document, MADE_BY, built_in], Definition::openapi_mark)
    }

    fn name(&self, made_by: &[&str], mark: impl Fn(&Definition) -> String) -> String {
        let marks: Vec<String> = self.members.iter().map(|member| mark(member)).collect();
        let gv = self.group_version.to_string();
        let inputs = made_by.iter().copied().chain([&*gv]).chain(marks.iter().map(String::as_str));
        let inputs: Vec<&[u8]> = inputs.map(str::as_bytes).collect();
        digest::made_of(&inputs)
    }

    /// Returns the JSON of the aggregated discovery of the version.
    pub fn discovery(&self) -> Vec<u8> {
        self.described().discovery()
    }

    /// Returns the JSON of the `APIResourceList`.
    pub fn resource_list(&self) -> Vec<u8> {
        self.described().resource_list()
    }

    /// Returns the JSON of the OpenAPI v3 document.
    pub fn openapi_v3(&self) -> Vec<u8> {
        self.openapi_v3_with(Some(&Words::open()))
    }

    /// Returns the JSON of the part of the OpenAPI v2 document.
    pub fn openapi_v2(&self) -> Vec<u8> {
        self.openapi_v2_with(Some(&Words::open()))
    }

    pub(super) fn openapi_v3_with(&self, words: Option<&Words>) -> Vec<u8> {
        openapi::v3(&self.described(), &self.members, words)
    }

    pub(super) fn openapi_v2_with(&self, words: Option<&Words>) -> Vec<u8> {
        openapi::v2(&self.described(), &self.members, words)
    }

    fn described(&self) -> Described<'_> {
        let members = self.members.iter();
        let version = &self.group_version.version;
        let kinds =
            members.filter_map(|member| Some(member.kind(member.versions().find(|v| v.name == *version)?)));
        Described {
            group_version: &self.group_version,
            kinds: kinds.collect(),
            types: &self.types,
            custom: true,
        }
    }
}
