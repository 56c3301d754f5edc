//! Proposed definition, which is not installed.

use std::sync::Arc;

use portico_machinery::{Object, Status};
use portico_store::{Key, Record, Resource, Value};

use crate::Result;
use crate::custom::definition_facts::DefinitionFacts;
use crate::custom::served_versions::ServedVersions;
use crate::definition;
use crate::registry::Registry;

/// Proposed definition and the versions that it would serve.
pub(super) struct ProposedDefinition {
    pub(super) facts: Arc<DefinitionFacts>,
    pub(super) versions: ServedVersions,
}

impl ProposedDefinition {
    /// Proposed definition of a body, with the names that it requests; `None` if the body is not a definition.
    pub(super) fn from_object(registry: &Registry, mut object: Object) -> Option<Self> {
        let names = object.get(&["spec", "names"])?;
        object.put(&["status", "acceptedNames"], names);
        let key = Key::new(&Resource::from(definition::resource()), "", object.name());
        let value = Value::new(object.to_json().as_slice(), portico_store::Indexed::default());
        Self::from_record(registry, Arc::new(Record { key, revision: 0, value })).ok()
    }

    pub(super) fn from_record(registry: &Registry, record: Arc<Record>) -> Result<Self> {
        let facts = Arc::new(DefinitionFacts::read(record.value.json()).map_err(Status::internal)?);
        let versions = registry.definitions().compile_proposed(&facts, &record);
        Ok(Self { facts, versions })
    }
}
