//! Schemas of a definition's versions, each compiled on first use, for requests in its version or for objects stored in it.

use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use portico_schema::structural::{CompileError, Structural};
use portico_schema::{Schema, Typed};
use portico_store::Record;

use super::definition_facts::DefinitionFacts;
use super::kind_defaults::KindDefaults;
use crate::definition::schema_of;

/// Schemas of all versions of a definition.
pub(crate) struct Schemas {
    facts: Arc<DefinitionFacts>,
    source: Arc<SchemaSource>,
    object_meta: Option<Typed>,
    /// Schemas in the definition's order.
    versions: Box<[OnceLock<Schema>]>,
}

/// Newest state of the definition that has these schemas; a reference to an older state would keep it in memory.
struct SchemaSource(RwLock<Arc<Record>>);

impl Schemas {
    pub(super) fn new(
        facts: &Arc<DefinitionFacts>,
        record: &Arc<Record>,
        kind_defaults: &KindDefaults,
    ) -> Self {
        Self {
            facts: Arc::clone(facts),
            source: Arc::new(SchemaSource(RwLock::new(Arc::clone(record)))),
            object_meta: kind_defaults.object_meta.clone(),
            versions: facts.versions().iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// State from which schemas are compiled.
    pub(super) fn record(&self) -> Arc<Record> {
        self.source.record()
    }

    /// Replaces the state by a newer one with the same schemas.
    pub(super) fn update_record(&self, record: &Arc<Record>) {
        *self.source.0.write() = Arc::clone(record);
    }

    /// Schema of a version, served or not.
    pub(super) fn get(&self, version: &str) -> Option<&Schema> {
        let index = self.facts.versions().iter().position(|known| known.name == version)?;
        let object_meta = self.object_meta.as_ref()?;
        Some(self.versions[index].get_or_init(|| {
            let (source, version) = (Arc::clone(&self.source), version.to_owned());
            Schema::structural_lazy(move || source.compile(&version), object_meta.clone())
        }))
    }
}

impl SchemaSource {
    fn record(&self) -> Arc<Record> {
        Arc::clone(&self.0.read())
    }

    fn compile(&self, version: &str) -> Result<Arc<Structural>, CompileError> {
        let record = self.record();
        compile(record.value.json(), version).inspect_err(|error| {
            let name = record.key.name();
            tracing::error!(name, version, %error, "cannot compile the schema of a CustomResourceDefinition");
        })
    }
}

/// Compiles the schema of a version; a version without a schema accepts everything.
fn compile(definition: &[u8], version: &str) -> Result<Arc<Structural>, CompileError> {
    let schema =
        schema_of(definition, version).map_err(|error| CompileError::InvalidJson(error.to_string()))?;
    schema.map_or_else(|| Ok(Structural::any_object()), |json| Structural::from_json(json.as_bytes()))
}
