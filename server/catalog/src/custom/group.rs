//! A group version of custom resources: its definitions, and the documents that describe them.

use std::sync::Arc;

use portico_machinery::{GroupVersion, digest};
use portico_schema::TypeSet;

use super::{Definition, openapi};
use crate::local::openapi::Descriptions;
use crate::local::{GENERATOR_VERSION, GroupDescription};

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
        self.document_name(&[document, GENERATOR_VERSION], |member| member.discovery_digest().to_owned())
    }

    /// Returns the name of an OpenAPI document, which also depends on the built-in types.
    pub fn openapi_name(&self, document: &str, built_in: &str) -> String {
        self.document_name(&[document, GENERATOR_VERSION, built_in], Definition::openapi_key)
    }

    fn document_name(&self, common_inputs: &[&str], member_input: impl Fn(&Definition) -> String) -> String {
        let member_inputs: Vec<String> = self.members.iter().map(|member| member_input(member)).collect();
        let gv = self.group_version.to_string();
        let inputs =
            common_inputs.iter().copied().chain([&*gv]).chain(member_inputs.iter().map(String::as_str));
        let inputs: Vec<&[u8]> = inputs.map(str::as_bytes).collect();
        digest::id_of_inputs(&inputs)
    }

    /// Returns the JSON of the aggregated discovery of the version.
    pub fn discovery(&self) -> Vec<u8> {
        self.description().discovery()
    }

    /// Returns the JSON of the `APIResourceList`.
    pub fn resource_list(&self) -> Vec<u8> {
        self.description().resource_list()
    }

    /// Returns the JSON of the OpenAPI v3 document.
    pub fn openapi_v3(&self) -> Vec<u8> {
        self.openapi_v3_with(Some(&Descriptions::open()))
    }

    /// Returns the JSON of the part of the OpenAPI v2 document.
    pub fn openapi_v2(&self) -> Vec<u8> {
        self.openapi_v2_with(Some(&Descriptions::open()))
    }

    pub(super) fn openapi_v3_with(&self, descriptions: Option<&Descriptions>) -> Vec<u8> {
        openapi::v3_document(&self.description(), &self.members, descriptions)
    }

    pub(super) fn openapi_v2_with(&self, descriptions: Option<&Descriptions>) -> Vec<u8> {
        openapi::v2_part(&self.description(), &self.members, descriptions)
    }

    fn description(&self) -> GroupDescription<'_> {
        let members = self.members.iter();
        let version = &self.group_version.version;
        let kinds =
            members.filter_map(|member| Some(member.kind(member.versions().find(|v| v.name == *version)?)));
        GroupDescription {
            group_version: &self.group_version,
            kinds: kinds.collect(),
            types: &self.types,
            is_custom: true,
        }
    }
}
