//! apiextensions.k8s.io: CustomResourceDefinition.
//!
//! `portico_schema` validates the schemas. This module validates all other fields.

mod columns;
mod conversion;
mod custom_resource_definition;
mod go_versions;
mod internal_definition;
mod names;
mod ratcheting;
mod scale;
mod schemas;
mod selectable;
mod stored_versions;
mod validate;
mod versions;

pub(crate) use custom_resource_definition::CustomResourceDefinition;
