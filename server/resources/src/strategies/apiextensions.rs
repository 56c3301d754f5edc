//! apiextensions.k8s.io: CustomResourceDefinitions, the descriptions that arrive at run time.
//!
//! `portico_schema` validates what a schema may contain; here stands what is particular to the object around it.

mod columns;
mod conversion;
mod custom_resource_definition;
mod held;
mod layout;
mod names;
mod ratchet;
mod scale;
mod schemas;
mod selectable;
mod stored_versions;
mod validate;
mod versions;

pub(crate) use custom_resource_definition::CustomResourceDefinition;
