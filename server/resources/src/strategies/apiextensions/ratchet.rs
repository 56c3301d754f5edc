//! What is demanded of a definition: everything of a new one, of a changed one no more than what the old one satisfied
//! where upstream would else lock people out.

use std::collections::{HashMap, HashSet};

use portico_machinery::{Cursor, Object};
use portico_schema::structural::definition::{self, Metadata, Terms, Traits};

use super::layout::{Layout, Part};
use portico_registry::condition;
use portico_registry::definition::{ESTABLISHED, is_ca_bundle};
use portico_validation::{checks, webhook};

/// The most selectable fields of a version.
pub(super) const MAX_SELECTABLE: usize = 8;
const CLIENT: [&str; 4] = ["spec", "conversion", "webhook", "clientConfig"];

/// The demands on one write.
pub(super) struct Demands<'a> {
    /// Every version has a schema, not only those that are served.
    pub(super) schemas: bool,
    /// One of the review versions is known to upstream.
    pub(super) review_versions: bool,
    /// Scope and kind stay as they are.
    pub(super) settled_names: bool,
    /// The CA bundle holds certificates.
    pub(super) ca_bundle: bool,
    /// Versions (and empty for all of them together) that have kept more selectable fields than there may be.
    pub(super) crowded: HashSet<String>,
    /// Versions whose schema stays as it was.
    pub(super) settled_schemas: HashSet<String>,
    /// Demands on schemas.
    pub(super) terms: Terms,
    /// What is known of the metadata that defaults may hold.
    pub(super) metadata: Metadata<'a>,
}

impl<'a> Demands<'a> {
    /// On a new definition. A bad CA bundle is reported later, by a condition.
    pub(super) fn on_create(metadata: Metadata<'a>) -> Self {
        Self {
            schemas: true,
            review_versions: true,
            settled_names: false,
            ca_bundle: false,
            crowded: HashSet::new(),
            settled_schemas: HashSet::new(),
            terms: Terms::NEW,
            metadata,
        }
    }

    /// On a change.
    pub(super) fn on_change(new: &Object, old: &Object, metadata: Metadata<'a>) -> Self {
        let layout = Layout::of(old);
        let schemas = layout.schemas();
        let had = traits(&schemas);
        let versions = old.at(&["spec", "conversion", "webhook", "conversionReviewVersions"]);
        let bundle = old.at(&CLIENT).field("caBundle");
        let established = condition::is_true(old, ESTABLISHED);
        let schemaless =
            |version: &Cursor<'_>| !version.field("schema").field("openAPIV3Schema").is_present();
        let terms = Terms {
            structural: schemas.iter().all(definition::is_structural),
            known_types: !had.unknown_types,
            pruned_defaults: !schemas
                .iter()
                .any(|schema| definition::has_unpruned_defaults(schema, metadata)),
            atomic_sets: !had.loose_sets,
            settled_keys: !had.loose_keys,
            status: false,
            stays: false,
        };
        Self {
            schemas: !layout.versions.iter().any(schemaless),
            review_versions: versions.is_empty() || webhook::knows_a_version(&versions),
            settled_names: established,
            ca_bundle: established && is_ca_bundle(bundle.str()),
            crowded: crowded(&Layout::of(new), &layout),
            settled_schemas: settled_schemas(&Layout::of(new), &layout),
            terms,
            metadata,
        }
    }

    /// With what the definition itself brings about: who prunes, defaults or extends needs a structural schema.
    pub(super) fn for_schemas(mut self, layout: &Layout<'_>, traits: Traits) -> Self {
        let prunes = !layout.spec.field("preserveUnknownFields").bool();
        self.terms.structural |= prunes || traits.defaults || traits.extensions;
        self
    }
}

/// What any of the schemas has.
pub(super) fn traits(schemas: &[Cursor<'_>]) -> Traits {
    schemas.iter().map(definition::traits).fold(Traits::default(), Traits::or)
}

/// Versions that have the schema that they had.
fn settled_schemas(new: &Layout<'_>, old: &Layout<'_>) -> HashSet<String> {
    // Of versions of one name the first counts: it comes last here.
    let before: HashMap<_, _> = by_name(old).rev().collect();
    let stays = |version: &&Cursor<'_>| {
        let before = before.get(version.field("name").str());
        before.is_some_and(|before| checks::same(&version.field("schema"), &before.field("schema")))
    };
    new.versions.iter().filter(stays).map(|version| version.field("name").str().to_owned()).collect()
}

/// Versions with their names.
fn by_name<'l, 'a>(layout: &'l Layout<'a>) -> impl DoubleEndedIterator<Item = (&'a str, &'l Cursor<'a>)> {
    layout.versions.iter().map(|version| (version.field("name").str(), version))
}

fn crowded(new: &Layout<'_>, old: &Layout<'_>) -> HashSet<String> {
    let too_many = |fields: &Option<Cursor<'_>>| fields.as_ref().is_some_and(|f| f.len() > MAX_SELECTABLE);
    let same = |new: &Option<Cursor<'_>>, old: &Option<Cursor<'_>>| {
        too_many(old) && matches!((new, old), (Some(new), Some(old)) if new.same_as(old))
    };
    let mut names = HashSet::new();
    if same(&new.common(Part::Selectable), &old.common(Part::Selectable)) {
        names.insert(String::new());
    }
    // Of versions of one name the last counts.
    let before: HashMap<_, _> = by_name(old).collect();
    for (name, version) in by_name(new) {
        let Some(before) = before.get(name) else { continue };
        if same(&new.own(version, Part::Selectable), &old.own(before, Part::Selectable)) {
            names.insert(name.to_owned());
        }
    }
    names
}
