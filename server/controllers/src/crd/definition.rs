//! Content of a CustomResourceDefinition that the controllers use, decoded once per change. Schemas are not stored.

use portico_registry::condition::Condition;
use portico_registry::definition::{self, Structure};
use portico_registry::{Conversion, DefinitionNames, StoredObject};
use serde::Deserialize;

use portico_registry::definition::{ESTABLISHED, FINALIZER, NAMES_ACCEPTED};

use super::condition_types::{APPROVED, NON_STRUCTURAL};

/// A version of a definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Version {
    pub name: String,
    pub served: bool,
}

/// Content of a definition. Two are equal if no controller can distinguish them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.generation`, the generation of the schemas.
    pub generation: i64,
    /// `spec.group`
    pub group: String,
    /// `spec.names`: the requested names.
    pub names: DefinitionNames,
    /// `status.acceptedNames`: the accepted names.
    pub accepted: DefinitionNames,
    /// All versions, in the order of the spec.
    pub versions: Box<[Version]>,
    /// Conditions that these controllers set, except Terminating, which only the finalizer reads and writes.
    pub conditions: Vec<Condition>,
    /// Approval annotation; `None` for groups that need no approval.
    pub approval: Option<String>,
    /// True if the CA bundle of the conversion webhook is valid, or there is none.
    pub has_sound_ca_bundle: bool,
    /// Result of checking that the schemas are structural.
    pub structure: Structure,
    /// True if the definition is being deleted and its instances must be deleted first.
    pub is_finalizing: bool,
}

impl Definition {
    /// Decodes a definition. Values known for the same generation of the same object, or reported by its status, are not
    /// computed again.
    #[must_use]
    pub fn read(stored: &StoredObject, indexed: Option<&Self>) -> Self {
        Self::from_parsed(stored.read().unwrap_or_default(), indexed, || Structure::check(stored.object()))
    }

    /// Decodes an object that is not stored.
    #[cfg(test)]
    pub(super) fn from_object(object: &portico_machinery::Object) -> Self {
        Self::from_parsed(object.decode(&[]).unwrap_or_default(), None, || Structure::check(object))
    }

    /// Builds the definition from decoded fields. Fields that cannot be decoded are empty: stored objects have been validated.
    fn from_parsed(
        parsed: DefinitionFields,
        indexed: Option<&Self>,
        structure: impl FnOnce() -> Structure,
    ) -> Self {
        let DefinitionFields { metadata, spec, status } = parsed;
        let decided = [NAMES_ACCEPTED, ESTABLISHED, APPROVED, NON_STRUCTURAL];
        let mut conditions = status.conditions.unwrap_or_default();
        conditions.retain(|condition| decided.contains(&&*condition.kind));
        // These live as long as the definition.
        conditions.shrink_to_fit();
        let same = indexed.filter(|k| k.uid == metadata.uid && k.generation == metadata.generation);
        let read = Self {
            approval: definition::is_protected(&spec.group)
                .then(|| metadata.annotations.unwrap_or_default().approval),
            uid: metadata.uid,
            generation: metadata.generation,
            group: spec.group,
            names: spec.names.unwrap_or_default(),
            accepted: status.accepted_names.unwrap_or_default(),
            versions: spec.versions.unwrap_or_default(),
            conditions,
            is_finalizing: metadata.deletion_timestamp.is_some()
                && metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER),
            ..Self::default()
        };
        let has_sound_ca_bundle =
            same.map_or_else(|| has_valid_ca_bundle(&spec.conversion), |known| known.has_sound_ca_bundle);
        let structure = match same {
            Some(known) => known.structure.clone(),
            None if indexed.is_none() && read.is_reported_structural(spec.preserve_unknown_fields) => {
                Structure::Sound
            }
            None => structure(),
        };
        Self { has_sound_ca_bundle, structure, ..read }
    }

    /// Returns true if the status reports structural schemas: a definition is established only after that check, and no later
    /// change makes a structural schema non-structural. This avoids decoding all schemas at startup.
    fn is_reported_structural(&self, preserves_unknown_fields: bool) -> bool {
        self.has_true_condition(ESTABLISHED)
            && self.condition(NON_STRUCTURAL).is_none()
            && !preserves_unknown_fields
    }

    /// Returns the names of the served versions.
    pub(super) fn served_versions(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().filter(|version| version.served).map(|version| version.name.as_str())
    }

    /// Returns one of the conditions that these controllers set.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Returns true if a condition exists and is `True`.
    #[must_use]
    pub fn has_true_condition(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }

    /// Returns true if the definition has this condition, ignoring its transition time.
    pub(super) fn has_condition(&self, condition: &Condition) -> bool {
        self.condition(&condition.kind).is_some_and(|current| {
            (&current.status, &current.reason, &current.message)
                == (&condition.status, &condition.reason, &condition.message)
        })
    }
}

/// Fields of a definition to decode; schemas are skipped.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DefinitionFields {
    metadata: Metadata,
    spec: Spec,
    status: StatusFields,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    generation: i64,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    /// [`definition::APPROVAL_ANNOTATION`]
    #[serde(rename = "api-approved.kubernetes.io")]
    approval: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    group: String,
    names: Option<DefinitionNames>,
    versions: Option<Box<[Version]>>,
    preserve_unknown_fields: bool,
    conversion: Conversion,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusFields {
    accepted_names: Option<DefinitionNames>,
    conditions: Option<Vec<Condition>>,
}

/// Returns true if the conversion has no webhook, or one with a valid CA bundle.
fn has_valid_ca_bundle(conversion: &Conversion) -> bool {
    let webhook = conversion.webhook.as_ref();
    webhook.is_none_or(|webhook| definition::is_ca_bundle(&webhook.client_config.ca_bundle))
}
