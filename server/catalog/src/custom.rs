//! Documents of custom resources: the definitions of each group version, and their descriptions in documents.
//!
//! A definition costs its facts and its encoded object, which is shared with the store. Documents are named by a digest of their
//! inputs and generated on request. A change affects only the group versions of its definition. The module does not depend on how
//! definitions are established or how their objects are served.

mod definition;
mod definitions;
mod group;
mod openapi;

pub use definition::Definition;
pub(crate) use definitions::Definitions;
pub(crate) use group::Group;

#[cfg(test)]
mod tests;
