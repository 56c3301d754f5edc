//! What a definition would do if it were written now: a rehearsal for people who are about to change one.
//!
//! Nothing is written. The definition goes through the door of all writes as a dry run; what it serves is compared with
//! what the installed one serves; and what is stored is judged by what would be served.

mod stored;
mod versions;

use std::sync::Arc;

use portico_machinery::{Object, Status};
use portico_schema::Format;
use portico_store::{Key, Record, Resource, Value};

use super::facts::Facts;
use super::serving::Serving;
use crate::Result;
use crate::definition;
use crate::options::{CreateOptions, UpdateOptions};
use crate::registry::{Context, Place, Registry, Verbs, Written};
use crate::served::ServedResource;

/// What is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The definition is refused.
    Error,
    /// It is accepted with a warning.
    Warning,
    /// It breaks what the installed definition allows.
    Breaking,
    /// A stored object would no longer be valid.
    Invalid,
    /// A stored object would lose a field.
    Lost,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The version of the definition, empty where it is about all of it.
    pub version: String,
    /// `namespace/name` or the name of a stored object, empty where it is about the definition.
    pub object: String,
    /// The field, as errors print it; empty for the whole.
    pub field: String,
    /// What is wrong.
    pub text: String,
}

/// What came out of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The definition's name.
    pub name: String,
    /// Whether a definition of this name is installed.
    pub installed: bool,
    /// What was found; of stored objects at most [`MAX_OBJECTS`] are named.
    pub findings: Vec<Finding>,
    /// How many stored objects were looked at.
    pub objects: u64,
    /// How many of them would be invalid or lose something.
    pub hit: u64,
}

const MEDIA_TYPES: [&str; 2] = ["application/json", "application/yaml"];

/// The most stored objects that are named.
pub const MAX_OBJECTS: u64 = 100;

impl Registry {
    /// Checks the definition in this body, JSON or YAML.
    ///
    /// # Errors
    /// 415 for another media type, 400 for a body that holds no definition; failures of the store.
    pub async fn check_definition(
        &self,
        context: &Context,
        body: &[u8],
        media_type: &str,
    ) -> Result<Checked> {
        let format = Format::of_media_type(media_type).filter(|format| *format != Format::Protobuf);
        let format = format.ok_or_else(|| Box::new(Status::unsupported_media_type(&MEDIA_TYPES)))?;
        let inner = self.verbs();
        let served = inner.served(&definition::resource())?;
        let info = &served.info;
        let decoded = info.schema.decode(body, format, &info.gvk).map_err(|e| e.status())?;
        let mut checked = Checked { name: decoded.object.name().to_owned(), ..Checked::default() };
        let warn = |text| Finding::of(FindingKind::Warning, "", text);
        checked.findings.extend(decoded.strict.into_iter().map(warn));
        let installed = inner.read(&served, "", &checked.name).await?;
        checked.installed = installed.is_some();
        let rehearsed = inner.rehearse(context, &served, decoded.object.clone(), installed.as_deref()).await;
        checked.take(rehearsed);
        let Some(new) = Rehearsed::of(self, decoded.object) else { return Ok(checked) };
        if let Some(installed) = installed {
            let old = Rehearsed::of_record(self, installed)?;
            checked.findings.extend(versions::compare(&old, &new));
            inner.check_stored(&old.facts, &new, &mut checked).await?;
        }
        Ok(checked)
    }
}

impl Finding {
    fn of(kind: FindingKind, field: &str, text: String) -> Self {
        Self { kind, version: String::new(), object: String::new(), field: field.to_owned(), text }
    }
}

impl Checked {
    fn take(&mut self, rehearsed: Result<Written>) {
        match rehearsed {
            Ok(written) => {
                let warn = |text| Finding::of(FindingKind::Warning, "", text);
                self.findings.extend(written.warnings.into_iter().map(warn));
            }
            Err(status) => self.findings.extend(refusals(&status)),
        }
    }
}

/// The causes of a refusal, or all of it.
fn refusals(status: &Status) -> Vec<Finding> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let of_cause = |field: &str, text: &str| Finding::of(FindingKind::Error, field, text.to_owned());
    let found: Vec<Finding> = causes.map(|cause| of_cause(&cause.field, &cause.message)).collect();
    if found.is_empty() { vec![of_cause("", &status.message)] } else { found }
}

impl Verbs {
    /// The write as a dry run, on top of what is installed.
    async fn rehearse(
        &self,
        context: &Context,
        served: &ServedResource,
        mut object: Object,
        installed: Option<&Record>,
    ) -> Result<Written> {
        let Some(installed) = installed else {
            let options = CreateOptions { dry_run: true, ..CreateOptions::default() };
            return self.create(context, served, "", object, &options).await;
        };
        object.set(&["metadata", "resourceVersion"], installed.revision.to_string());
        object.remove(&["metadata", "uid"]);
        let name = object.name().to_owned();
        let place = Place { name: &name, ..Place::default() };
        let options = UpdateOptions { dry_run: true, ..UpdateOptions::default() };
        self.update(context, served, place, object, &options).await
    }
}

/// A definition and what it would serve.
struct Rehearsed {
    facts: Arc<Facts>,
    serving: Serving,
}

impl Rehearsed {
    /// Of a body, under the names that it asks for; nothing when it cannot be read as a definition.
    fn of(registry: &Registry, mut object: Object) -> Option<Self> {
        let names = object.get(&["spec", "names"])?;
        object.put(&["status", "acceptedNames"], names);
        let key = Key::new(&Resource::from(definition::resource()), "", object.name());
        let value = Value::new(object.to_json().as_slice(), portico_store::Indexed::default());
        Self::of_record(registry, Arc::new(Record { key, revision: 0, value })).ok()
    }

    fn of_record(registry: &Registry, record: Arc<Record>) -> Result<Self> {
        let facts = Arc::new(Facts::read(record.value.json()).map_err(Status::internal)?);
        let serving = registry.definitions().rehearse(&facts, &record);
        Ok(Self { facts, serving })
    }
}
