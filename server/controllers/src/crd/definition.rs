//! What the controllers need to know of a CustomResourceDefinition, read off it once per change. Schemas are not kept.

use portico_machinery::{Object, object::Cursor};
use portico_registry::Names;
use portico_registry::condition::{self, Condition};
use portico_registry::definition::{self, APPROVAL_ANNOTATION, Structure};
use serde::Deserialize;

use super::{APPROVED, ESTABLISHED, FINALIZER, NAMES_ACCEPTED, NON_STRUCTURAL};

/// A version, as far as it is of interest here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
}

/// A definition. Two are equal when no controller could tell them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.generation`: of the schemas.
    pub generation: i64,
    /// `spec.group`
    pub group: String,
    /// What it asks for.
    pub names: Names,
    /// What it has.
    pub accepted: Names,
    /// All versions, in their order.
    pub versions: Vec<Version>,
    /// The conditions that are judged here; Terminating is told by the finalizer alone.
    pub conditions: Vec<Condition>,
    /// The approval annotation, for groups that need one.
    pub approval: Option<String>,
    /// Whether what its conversion webhook is to be trusted by can be read.
    pub has_sound_ca_bundle: bool,
    /// Whether its schemas are structural.
    pub structure: Structure,
    /// Whether it is being deleted and waits for its instances to go.
    pub is_finalizing: bool,
}

impl Definition {
    /// Reads a definition. What was known of the same generation of the same object is not worked out again.
    #[must_use]
    pub fn read(object: &Object, known: Option<&Self>) -> Self {
        let spec = object.at(&["spec"]);
        let group = spec.field("group").str().to_owned();
        let conditions = [NAMES_ACCEPTED, ESTABLISHED, APPROVED, NON_STRUCTURAL];
        let annotation = || object.annotation(APPROVAL_ANNOTATION).unwrap_or_default().to_owned();
        let same = known.filter(|k| k.uid == object.uid() && k.generation == object.generation());
        Self {
            uid: object.uid().to_owned(),
            generation: object.generation(),
            approval: definition::is_protected(&group).then(annotation),
            group,
            names: names(object, &["spec", "names"]),
            accepted: names(object, &["status", "acceptedNames"]),
            versions: object.decode(&["spec", "versions"]).unwrap_or_default(),
            conditions: conditions.iter().filter_map(|kind| condition::get(object, kind)).collect(),
            has_sound_ca_bundle: match same {
                Some(known) => known.has_sound_ca_bundle,
                None => has_sound_ca_bundle(&spec),
            },
            structure: match same {
                Some(known) => known.structure.clone(),
                None => Structure::of(object),
            },
            is_finalizing: object.deletion_timestamp().is_some() && object.finalizers().contains(&FINALIZER),
        }
    }

    /// The names of its served versions.
    pub(super) fn served(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().filter(|version| version.served).map(|version| version.name.as_str())
    }

    /// A condition of those that are judged here.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether a condition is there and `True`.
    #[must_use]
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }

    /// Whether a condition says this already, whenever it began to.
    pub(super) fn says(&self, condition: &Condition) -> bool {
        self.condition(&condition.kind).is_some_and(|current| {
            (&current.status, &current.reason, &current.message)
                == (&condition.status, &condition.reason, &condition.message)
        })
    }
}

/// What cannot be read stands for nothing: what is stored has been judged.
fn names(object: &Object, path: &[&str]) -> Names {
    object.decode::<Option<Names>>(path).ok().flatten().unwrap_or_default()
}

fn has_sound_ca_bundle(spec: &Cursor<'_>) -> bool {
    let webhook = spec.field("conversion").field("webhook");
    definition::is_ca_bundle(webhook.field("clientConfig").field("caBundle").str())
}

/// A condition in upstream's words.
pub(super) fn condition(kind: &str, status: &str, reason: &str, message: impl Into<String>) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        ..Condition::default()
    }
}
