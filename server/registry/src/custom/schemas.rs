//! The schemas of a definition's versions: each compiled when somebody needs it, be it for requests in its version or
//! for objects that are stored in it.

use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
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
    source: Arc<Source>,
    object_meta: Option<Typed>,
    /// In the definition's order.
    versions: Box<[OnceLock<Schema>]>,
}

/// The newest state of a definition that has these schemas: one that nobody else refers to would be kept for them alone.
struct Source(RwLock<Arc<Record>>);

impl Schemas {
    pub(super) fn new(facts: &Arc<Facts>, record: &Arc<Record>, shapes: &Shapes) -> Self {
        Self {
            facts: Arc::clone(facts),
            source: Arc::new(Source(RwLock::new(Arc::clone(record)))),
            object_meta: shapes.object_meta.clone(),
            versions: facts.versions().iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The state that is read when a schema is needed.
    pub(super) fn record(&self) -> Arc<Record> {
        self.source.record()
    }

    /// Takes a newer state whose schemas are the same.
    pub(super) fn renew(&self, record: &Arc<Record>) {
        *self.source.0.write() = Arc::clone(record);
    }

    /// The schema of a version, served or not.
    pub(super) fn get(&self, version: &str) -> Option<&Schema> {
        let at = self.facts.versions().iter().position(|known| known.name == version)?;
        let object_meta = self.object_meta.as_ref()?;
        Some(self.versions[at].get_or_init(|| {
            let (source, version) = (Arc::clone(&self.source), version.to_owned());
            Schema::structural_on_use(move || source.compile(&version), object_meta.clone())
        }))
    }
}

impl Source {
    fn record(&self) -> Arc<Record> {
        Arc::clone(&self.0.read())
    }

    /// What was stored was valid when it was written. Were it not, its objects would be neither judged nor pruned.
    fn compile(&self, version: &str) -> Arc<Structural> {
        let record = self.record();
        let compiled =
            schema_of(record.value.json(), version).map(|json| Structural::from_json(json.as_bytes()));
        match compiled {
            Some(Ok(compiled)) => compiled,
            Some(Err(error)) => {
                let name = record.key.name();
                tracing::error!(name, version, %error, "the schema of a definition cannot be used");
                Structural::anything()
            }
            None => Structural::anything(),
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
