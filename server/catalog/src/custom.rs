//! Documents of custom resources: which definitions make up a group version, and how documents describe it.
//!
//! A definition costs its facts and its bytes, which others hold anyway; documents are named by what they are made of
//! and made when somebody asks. A change concerns the group versions of that definition only. It must not know how
//! definitions come to be established, nor how their objects are served.

mod definition;
mod definitions;
mod group;
mod openapi;

pub use definition::Definition;
pub(crate) use definitions::Definitions;
pub(crate) use group::Group;

#[cfg(test)]
mod tests;
