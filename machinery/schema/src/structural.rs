//! The structural dialect: what a custom resource's schema says, and what it does with objects.
//!
//! An `openAPIV3Schema` arrives as JSON and is compiled once into a tree of shared nodes. The rooms below walk an object
//! and that tree side by side. Must not know CustomResourceDefinitions (who they are served by, their versions), storage or
//! HTTP; what may stand in a definition's schema is judged elsewhere, before it comes here.

mod at;
mod breaking;
mod compile;
mod correlate;
mod decode;
mod default;
pub mod definition;
mod embedded;
mod format;
mod held;
mod intern;
mod lists;
mod meta;
pub mod model;
mod nulls;
mod pattern;
mod printed;
mod prune;
mod read;
mod resource;
pub mod rules;
mod settled;
mod validate;

pub use breaking::{Breaking, MOST_BREAKING};
pub use compile::CompileError;
pub use correlate::Pair;
pub(crate) use decode::Source;
pub use embedded::Place;
pub use format::{Format, FormatKind};
pub use model::{Additional, Checks, JsonType, Marks, Node, Rule};
pub use pattern::Pattern;
pub(crate) use read::body;
pub use resource::{CustomResource, rules_not_checked};

use std::sync::Arc;

use serde_json::Value;

/// The compiled schema of one version of a custom resource. Immutable and shared.
#[derive(Debug)]
pub struct Structural {
    root: Arc<Node>,
    nodes: usize,
}

#[cfg(test)]
mod properties;

#[cfg(test)]
pub(crate) use decode::tests::object_meta as object_meta_for_tests;

impl Structural {
    /// Compiles the JSON of a JSONSchemaProps (`openAPIV3Schema`). Equal sub-schemas are shared; titles, descriptions and
    /// examples are left out; a null default is none. Which fields objects always have (`apiVersion`, `kind`, `metadata`)
    /// is known to the walks, not written into the tree.
    ///
    /// # Errors
    /// [`CompileError`]: what upstream's conversion to a structural schema refuses.
    pub fn compile(props: &Value) -> Result<Arc<Self>, CompileError> {
        compile::root(props).map(|(root, nodes)| Arc::new(Self { root, nodes }))
    }

    /// The same from the bytes of the JSON.
    ///
    /// # Errors
    /// [`CompileError`]; bytes that are no JSON, too.
    pub fn from_json(json: &[u8]) -> Result<Arc<Self>, CompileError> {
        let props: Value = serde_json::from_slice(json).map_err(|e| CompileError::NoJson(e.to_string()))?;
        Self::compile(&props)
    }

    /// What says nothing: objects of any content.
    #[must_use]
    pub fn anything() -> Arc<Self> {
        let root = Node { ty: Some(JsonType::Object), preserve_unknown: true, ..Node::default() };
        Arc::new(Self { root: Arc::new(root), nodes: 1 })
    }

    /// The node of the object itself.
    #[must_use]
    pub fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// How many distinct nodes the tree is made of.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}
