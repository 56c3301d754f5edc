//! The compiled schema of one version of a custom resource.

use std::sync::Arc;

use portico_machinery::object::value_from_json;
use serde_json::Value;

use super::compile::root;
use super::compile_error::CompileError;
use super::model::{JsonType, Node};

/// The compiled schema of one version of a custom resource. Immutable and shared.
#[derive(Debug)]
pub struct Structural {
    root: Arc<Node>,
    nodes: usize,
}

impl Structural {
    /// Compiles the JSON of a JSONSchemaProps (`openAPIV3Schema`). Equal sub-schemas are shared; titles, descriptions and
    /// examples are left out; a null default is none. Which fields objects always have (`apiVersion`, `kind`, `metadata`)
    /// is known to the walks, not written into the tree.
    ///
    /// # Errors
    /// [`CompileError`]: what upstream's conversion to a structural schema refuses.
    pub fn compile(props: &Value) -> Result<Arc<Self>, CompileError> {
        root(props).map(|(root, nodes)| Arc::new(Self { root, nodes }))
    }

    /// The same from the bytes of the JSON.
    ///
    /// # Errors
    /// [`CompileError`]; bytes that are no JSON, too.
    pub fn from_json(json: &[u8]) -> Result<Arc<Self>, CompileError> {
        let props = value_from_json(json).map_err(|e| CompileError::NoJson(e.to_string()))?;
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
