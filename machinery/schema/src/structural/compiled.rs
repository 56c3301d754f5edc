//! Compiled schema of one version of a custom resource.

use std::sync::Arc;

use portico_machinery::object::value_from_json;
use serde_json::Value;

use super::compile::compile_root;
use super::compile_error::CompileError;
use super::model::{JsonType, SchemaNode};

/// Compiled schema of one version of a custom resource. Immutable and shared.
#[derive(Debug)]
pub struct Structural {
    root: Arc<SchemaNode>,
    nodes: usize,
}

impl Structural {
    /// Compiles the JSON of a JSONSchemaProps (`openAPIV3Schema`). Equal sub-schemas are shared; titles, descriptions and
    /// examples are dropped; a null default counts as absent. The fields that every object has (`apiVersion`, `kind`,
    /// `metadata`) are not in the tree; the walks add them.
    ///
    /// # Errors
    /// [`CompileError`] for schemas that upstream's conversion to a structural schema rejects.
    pub fn compile(props: &Value) -> Result<Arc<Self>, CompileError> {
        compile_root(props).map(|(root, nodes)| Arc::new(Self { root, nodes }))
    }

    /// Compiles a schema from the bytes of its JSON.
    ///
    /// # Errors
    /// [`CompileError`], including malformed JSON.
    pub fn from_json(json: &[u8]) -> Result<Arc<Self>, CompileError> {
        let props = value_from_json(json).map_err(|e| CompileError::InvalidJson(e.to_string()))?;
        Self::compile(&props)
    }

    /// Returns a schema that accepts objects of any content.
    #[must_use]
    pub fn any_object() -> Arc<Self> {
        let root = SchemaNode { ty: Some(JsonType::Object), preserve_unknown: true, ..SchemaNode::default() };
        Arc::new(Self { root: Arc::new(root), nodes: 1 })
    }

    /// Returns the node of the whole object.
    #[must_use]
    pub fn root(&self) -> &Arc<SchemaNode> {
        &self.root
    }

    /// Returns the number of distinct nodes in the tree.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}
