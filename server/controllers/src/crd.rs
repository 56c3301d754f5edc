//! Controllers of CustomResourceDefinitions: they accept names, establish definitions, maintain the conditions of schemas and
//! approval, delete the instances of deleted definitions, and register the APIServices of group versions.
//!
//! One follower maintains an index for the controllers (hook `start-apiextensions-informers`). A change enqueues only the
//! definitions that it affects, and all decisions about a definition are combined into one write. The module does not depend on
//! how definitions are served.

mod approval;
mod condition_types;
mod conditions;
mod custom_resources;
mod definition;
mod establishing;
mod finalizer;
mod index;
mod naming;
mod non_structural;
mod status_change;

pub use custom_resources::CustomResources;
pub use definition::{Definition, Version};
pub use finalizer::Finalizer;
