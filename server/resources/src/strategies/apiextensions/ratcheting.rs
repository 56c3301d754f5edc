//! Ratcheting validation of definitions. A new definition must satisfy all rules. A changed definition need not satisfy rules
//! that the old one already violated, in cases where upstream could otherwise make updates impossible.

use std::collections::{HashMap, HashSet};

use portico_machinery::{Cursor, Object};
use portico_schema::structural::definition::{self, MetadataRules, Requirements, SchemaFeatures};

use super::internal_definition::{InternalDefinition, VersionPart};
use portico_registry::condition;
use portico_registry::definition::{ESTABLISHED, is_ca_bundle};
use portico_validation::{checks, webhook};

/// Maximum number of selectable fields of a version.
pub(super) const MAX_SELECTABLE: usize = 8;
const CLIENT: [&str; 4] = ["spec", "conversion", "webhook", "clientConfig"];

/// Rules that apply to one write.
pub(super) struct DefinitionRules<'a> {
    /// Requires a schema in every version, not only in versions that are served.
    pub(super) require_schemas: bool,
    /// Requires a review version that upstream supports.
    pub(super) require_review_version: bool,
    /// Makes scope and kind immutable.
    pub(super) immutable_names: bool,
    /// Requires certificates in the CA bundle.
    pub(super) check_ca_bundle: bool,
    /// Versions with unchanged selectable fields that exceed the limit. The empty name stands for fields that all versions share.
    pub(super) over_field_limit: HashSet<String>,
    /// Versions with an unchanged schema.
    pub(super) unchanged_schemas: HashSet<String>,
    /// Requirements for schemas.
    pub(super) schema_requirements: Requirements,
    /// Rules for metadata in defaults.
    pub(super) metadata: MetadataRules<'a>,
}

impl<'a> DefinitionRules<'a> {
    /// Returns the rules for a new definition. An invalid CA bundle is accepted: a condition reports it later.
    pub(super) fn for_create(metadata: MetadataRules<'a>) -> Self {
        Self {
            require_schemas: true,
            require_review_version: true,
            immutable_names: false,
            check_ca_bundle: false,
            over_field_limit: HashSet::new(),
            unchanged_schemas: HashSet::new(),
            schema_requirements: Requirements::NEW_DEFINITION,
            metadata,
        }
    }

    /// Returns the rules for a changed definition.
    pub(super) fn for_update(new: &Object, old: &Object, metadata: MetadataRules<'a>) -> Self {
        let layout = InternalDefinition::of(old);
        let schemas = layout.schemas();
        let old_features = schema_features(&schemas);
        let versions = old.at(&["spec", "conversion", "webhook", "conversionReviewVersions"]);
        let bundle = old.at(&CLIENT).field("caBundle");
        let established = condition::is_true(old, ESTABLISHED);
        let schemaless =
            |version: &Cursor<'_>| !version.field("schema").field("openAPIV3Schema").is_present();
        let schema_requirements = Requirements {
            structural: schemas.iter().all(definition::is_structural),
            known_types: !old_features.unknown_types,
            pruned_defaults: !schemas
                .iter()
                .any(|schema| definition::has_unpruned_defaults(schema, metadata)),
            atomic_sets: !old_features.loose_sets,
            strict_keys: !old_features.loose_keys,
            has_status: false,
            is_unchanged: false,
        };
        Self {
            require_schemas: !layout.versions.iter().any(schemaless),
            require_review_version: versions.is_empty() || webhook::has_known_version(&versions),
            immutable_names: established,
            check_ca_bundle: established && is_ca_bundle(bundle.str()),
            over_field_limit: over_field_limit(&InternalDefinition::of(new), &layout),
            unchanged_schemas: unchanged_schemas(&InternalDefinition::of(new), &layout),
            schema_requirements,
            metadata,
        }
    }

    /// Adds the requirements that follow from the content: pruning, defaults and extensions require a structural schema.
    pub(super) fn with_schema_features(
        mut self,
        layout: &InternalDefinition<'_>,
        traits: SchemaFeatures,
    ) -> Self {
        let prunes = !layout.spec.field("preserveUnknownFields").bool();
        self.schema_requirements.structural |= prunes || traits.defaults || traits.extensions;
        self
    }
}

/// Returns the features that any of the schemas uses.
pub(super) fn schema_features(schemas: &[Cursor<'_>]) -> SchemaFeatures {
    schemas.iter().map(definition::features).fold(SchemaFeatures::default(), SchemaFeatures::union)
}

/// Returns the versions with an unchanged schema.
fn unchanged_schemas(new: &InternalDefinition<'_>, old: &InternalDefinition<'_>) -> HashSet<String> {
    // If several versions have one name, the first one counts: in reverse order, it replaces the others.
    let before: HashMap<_, _> = by_name(old).rev().collect();
    let remains = |version: &&Cursor<'_>| {
        let before = before.get(version.field("name").str());
        before.is_some_and(|before| checks::is_same(&version.field("schema"), &before.field("schema")))
    };
    new.versions.iter().filter(remains).map(|version| version.field("name").str().to_owned()).collect()
}

/// Iterates over versions with their names.
fn by_name<'l, 'a>(
    layout: &'l InternalDefinition<'a>,
) -> impl DoubleEndedIterator<Item = (&'a str, &'l Cursor<'a>)> {
    layout.versions.iter().map(|version| (version.field("name").str(), version))
}

fn over_field_limit(new: &InternalDefinition<'_>, old: &InternalDefinition<'_>) -> HashSet<String> {
    let too_many = |fields: &Option<Cursor<'_>>| fields.as_ref().is_some_and(|f| f.len() > MAX_SELECTABLE);
    let is_same = |new: &Option<Cursor<'_>>, old: &Option<Cursor<'_>>| {
        too_many(old) && matches!((new, old), (Some(new), Some(old)) if new.same_as(old))
    };
    let mut names = HashSet::new();
    if is_same(&new.shared_part(VersionPart::Selectable), &old.shared_part(VersionPart::Selectable)) {
        names.insert(String::new());
    }
    // If several versions have one name, the last one counts.
    let before: HashMap<_, _> = by_name(old).collect();
    for (name, version) in by_name(new) {
        let Some(before) = before.get(name) else { continue };
        if is_same(
            &new.version_part(version, VersionPart::Selectable),
            &old.version_part(before, VersionPart::Selectable),
        ) {
            names.insert(name.to_owned());
        }
    }
    names
}
