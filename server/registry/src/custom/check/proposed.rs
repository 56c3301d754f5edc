//! Proposed definition, which is not installed.

use std::sync::Arc;

use portico_machinery::{Object, Status};
use portico_store::{Key, Record, Resource, Value};

use crate::Result;
use crate::custom::facts::Facts;
use crate::custom::serving::Serving;
use crate::definition;
use crate::registry::Registry;

/// Proposed definition and the versions that it would serve.
pub(super) struct Proposed {
    pub(super) facts: Arc<Facts>,
    pub(super) serving: Serving,
}

impl Proposed {
    /// Proposed definition of a body, with the names that it requests; `None` if the body is not a definition.
    pub(super) fn of(registry: &Registry, mut object: Object) -> Option<Self> {
        let names = object.get(&["spec", "names"])?;
        object.put(&["status", "acceptedNames"], names);
        let key = Key::new(&Resource::from(definition::resource()), "", object.name());
        let value = Value::new(object.to_json().as_slice(), portico_store::Indexed::default());
        Self::of_record(registry, Arc::new(Record { key, revision: 0, value })).ok()
    }

    pub(super) fn of_record(registry: &Registry, record: Arc<Record>) -> Result<Self> {
        let facts = Arc::new(Facts::read(record.value.json()).map_err(Status::internal)?);
        let serving = registry.definitions().proposed(&facts, &record);
        Ok(Self { facts, serving })
    }
}
