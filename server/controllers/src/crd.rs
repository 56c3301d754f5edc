//! Keeps the promises of CustomResourceDefinitions: which names are accepted, when they are established, the conditions of
//! their schemas and approval, that their instances go with them, and that their group versions have APIServices.
//!
//! One follower keeps an index of what the controllers need to know (hook `start-apiextensions-informers`); a change queues
//! only definitions that it touches, and all that is decided about one is one write. It must not know what serving a
//! definition takes.

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
mod verdict;

pub use custom_resources::CustomResources;
pub use definition::{Definition, Version};
pub use finalizer::Finalizer;
