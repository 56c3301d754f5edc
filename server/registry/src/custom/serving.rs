//! What a definition serves: each version as a kind, made on first use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use portico_kit::lifecycle::Signal;
use portico_schema::Schema;
use portico_schema::structural::Structural;
use portico_store::Record;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Custom;
use super::facts::{Facts, Version};
use super::kind::{self, Shapes};
use crate::served::Served;

/// All versions of a definition, until its spec or names change.
pub(crate) struct Serving {
    facts: Arc<Facts>,
    record: Arc<Record>,
    shapes: Arc<Shapes>,
    /// Nothing for a version whose schema cannot be used.
    versions: Box<[OnceLock<Option<Arc<Served>>>]>,
    /// Whether anybody has asked since the last look.
    used: AtomicBool,
    /// Given when something else is served in its place: watches end then.
    pub(crate) over: Signal,
}

impl Serving {
    pub(super) fn new(facts: &Arc<Facts>, record: &Arc<Record>, shapes: &Arc<Shapes>) -> Self {
        Self {
            facts: Arc::clone(facts),
            record: Arc::clone(record),
            shapes: Arc::clone(shapes),
            versions: facts.versions().iter().map(|_| OnceLock::new()).collect(),
            used: AtomicBool::new(false),
            over: Signal::new("custom-resource-over"),
        }
    }

    /// The same with nothing made yet, when nobody has asked for what is made since the last look.
    pub(super) fn unless_used(&self) -> Option<Self> {
        let idle = !self.used.swap(false, Ordering::Relaxed);
        let made = self.versions.iter().any(|version| version.get().is_some());
        (idle && made)
            .then(|| Self { over: self.over.clone(), ..Self::new(&self.facts, &self.record, &self.shapes) })
    }

    /// A version that requests may use.
    pub(crate) fn version(&self, name: &str) -> Option<&Arc<Served>> {
        self.find(|version| version.served && version.name == name)
    }

    /// The version that our own code speaks: the one that objects are stored in.
    pub(crate) fn storage(&self) -> Option<&Arc<Served>> {
        self.find(|version| version.storage)
    }

    fn find(&self, is: impl Fn(&Version) -> bool) -> Option<&Arc<Served>> {
        let at = self.facts.versions().iter().position(is)?;
        self.used.store(true, Ordering::Relaxed);
        let made = self.versions[at].get_or_init(|| self.make(&self.facts.versions()[at]).map(Arc::new));
        made.as_ref()
    }

    fn make(&self, version: &Version) -> Option<Served> {
        let schema = self.schema(version)?;
        let stored = self.facts.storage()?;
        let storage = if stored.name == version.name { schema.clone() } else { self.schema(stored)? };
        let custom = Custom::new(&self.facts, version, self.record.revision, storage, self.over.clone());
        let info = kind::of(&self.facts, version, schema, self.shapes.scale.as_ref());
        Some(Served::of_custom(info, version.subresources.scale.as_ref(), custom))
    }

    fn schema(&self, version: &Version) -> Option<Schema> {
        let json = schema_of(self.record.value.json(), &version.name)?;
        match Structural::from_json(json.as_bytes()) {
            Ok(compiled) => Some(Schema::structural(compiled, self.shapes.object_meta.clone()?)),
            // What was stored was valid when it was written.
            Err(error) => {
                let (name, version) = (self.facts.name(), &version.name);
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
