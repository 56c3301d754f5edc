//! The schemas of a definition's versions: each compiled when somebody needs it, be it for requests in its version or
//! for objects that are stored in it.

use std::sync::{Arc, OnceLock};

use portico_schema::structural::Structural;
use portico_schema::{Schema, Typed};
use portico_store::Record;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::facts::Facts;
use super::kind::Shapes;

/// See the module.
pub(crate) struct Schemas {
    facts: Arc<Facts>,
    record: Arc<Record>,
    object_meta: Option<Typed>,
    /// In the definition's order; nothing for a version whose schema cannot be used.
    versions: Box<[OnceLock<Option<Schema>>]>,
}

impl Schemas {
    pub(super) fn new(facts: &Arc<Facts>, record: &Arc<Record>, shapes: &Shapes) -> Self {
        Self {
            facts: Arc::clone(facts),
            record: Arc::clone(record),
            object_meta: shapes.object_meta.clone(),
            versions: facts.versions().iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The schema of a version, served or not.
    pub(super) fn get(&self, version: &str) -> Option<&Schema> {
        let at = self.facts.versions().iter().position(|known| known.name == version)?;
        self.versions[at].get_or_init(|| self.compile(version)).as_ref()
    }

    fn compile(&self, version: &str) -> Option<Schema> {
        let json = schema_of(self.record.value.json(), version)?;
        match Structural::from_json(json.as_bytes()) {
            Ok(compiled) => Some(Schema::structural(compiled, self.object_meta.clone()?)),
            // What was stored was valid when it was written.
            Err(error) => {
                let name = self.facts.name();
                tracing::error!(name, version, %error, "the schema of a definition cannot be used");
                None
            }
        }
    }
}

/// The bytes of a version's schema in a definition.
fn schema_of<'a>(definition: &'a [u8], version: &str) -> Option<&'a str> {
    #[derive(Deserialize)]
    struct Definition<'a> {
        #[serde(borrow)]
        spec: Spec<'a>,
    }
    #[derive(Deserialize)]
    struct Spec<'a> {
        #[serde(borrow)]
        versions: Vec<Versioned<'a>>,
    }
    #[derive(Deserialize)]
    struct Versioned<'a> {
        name: String,
        #[serde(borrow)]
        schema: Option<Validation<'a>>,
    }
    #[derive(Deserialize)]
    struct Validation<'a> {
        #[serde(borrow, rename = "openAPIV3Schema")]
        schema: Option<&'a RawValue>,
    }
    let definition: Definition<'_> = serde_json::from_slice(definition).ok()?;
    let found = definition.spec.versions.into_iter().find(|v| v.name == version)?;
    found.schema?.schema.map(RawValue::get)
}
