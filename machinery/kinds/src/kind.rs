//! What generic code knows of a kind.

use std::sync::Arc;

use portico_machinery::expiration::Lifecycle;
use portico_machinery::gvk::{
    GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource,
};
use portico_machinery::{Cursor, Object};
use portico_schema::Schema;

pub use crate::choice::{NameRule, Orphaning};
use crate::column::ColumnRule;
use crate::ownership::Ownership;

/// A kind as it is served in one group version.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// The plural resource of paths.
    pub resource: String,
    /// The singular name.
    pub singular: String,
    /// The kind of lists, `ConfigMapList`.
    pub list_kind: String,
    /// Short names, such as `cm`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs of the resource itself, sorted.
    pub verbs: Arc<[String]>,
    /// Subresources, sorted by name.
    pub subresources: Vec<Subresource>,
    /// Columns of the Table form, in order.
    pub columns: Arc<[ColumnRule]>,
    /// Fields that field selectors may name, in upstream's order.
    pub selectable: Vec<String>,
    /// The group and resource that objects are stored under; other served versions and groups may share them.
    pub storage: GroupResource,
    /// The version (of the storage group) that objects are stored in.
    pub storage_version: String,
    /// The version in which upstream's server stores it: discovery has a hash of it.
    pub upstream_storage_version: String,
    /// The types of the object.
    pub schema: Schema,
    /// The types of its list; nothing for kinds that are never listed (reviews, bindings).
    pub list_schema: Option<Schema>,
    /// Whether objects of it are kept. Kinds that are not answer their verbs by an action of the registry.
    pub stored: bool,
    /// The rule that names follow.
    pub name_rule: NameRule,
    /// Whether upstream's server has no cache of it, and so does not say when a revision that is not there yet may be there.
    pub uncached: bool,
    /// Whether PUT of a missing object creates it.
    pub allow_create_on_update: bool,
    /// Whether an update without resourceVersion is accepted: the last write wins.
    pub allow_unconditional_update: bool,
    /// What deletion does differently.
    pub deletion: Deletion,
    /// When `metadata.generation` counts.
    pub generation: Generation,
    /// What the `status` subresource owns; nothing for kinds without one.
    pub status: Option<Arc<StatusRule>>,
    /// Which fields whoever writes may come to own.
    pub ownership: Ownership,
    /// Whether finalizers without a domain are accepted.
    pub allow_unqualified_finalizers: bool,
    /// Whether objects expire by themselves (events; the server's `--event-ttl` says when).
    pub expires: bool,
    /// A warning that every answer about the kind carries, empty for none.
    pub deprecation: String,
    /// Whether it is served only when it is asked for (`--runtime-config`).
    pub off_by_default: bool,
    /// Which releases serve it.
    pub lifecycle: Lifecycle,
}

impl KindInfo {
    /// Whether a table of it has the columns that upstream's server gives kinds without a printer.
    #[must_use]
    pub fn has_default_columns(&self) -> bool {
        self.columns.iter().map(|rule| rule.column.name.as_str()).eq(["Name", "Created At"])
    }

    /// The group version.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        self.gvk.group_version()
    }

    /// Group and kind.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    /// Group, version and resource.
    #[must_use]
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.gvk.group, &self.gvk.version, &self.resource)
    }

    /// Group and resource.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.gvk.group, &self.resource)
    }

    /// Whether this is the version that objects are stored in.
    #[must_use]
    pub fn is_storage_version(&self) -> bool {
        self.gvk.group == self.storage.group && self.gvk.version == self.storage_version
    }

    /// Whether the resource itself has this verb.
    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// The subresource of this name.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}

/// A subresource.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// `status`, `scale`, `finalize`, ...
    pub name: String,
    /// The kind that it takes and answers with; the resource's own for most.
    pub kind: GroupVersionKind,
    /// The types of that kind; nothing for options that travel in the query (`PodExecOptions`).
    pub schema: Option<Schema>,
    /// Its verbs, sorted.
    pub verbs: Arc<[String]>,
    /// Whether requests are handed on to something else (a kubelet, a backend).
    pub connect: bool,
    /// Whether paths below it are served.
    pub below: bool,
    /// What its query takes.
    pub parameters: Vec<QueryParameter>,
}

/// One parameter in the query of a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryParameter {
    /// Its name.
    pub name: String,
    /// Its name among the shared parameters of OpenAPI version 2.
    pub shared: String,
    /// `string`, `integer` or `boolean`.
    pub ty: String,
    /// What it says, for people.
    pub about: String,
}

impl Subresource {
    /// Whether it has this verb.
    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }
}

/// What deletion does differently for a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// A DELETE that removes the object answers with its last state instead of a Status.
    pub answers_object: bool,
    /// OpenAPI documents name a Status as the answer nevertheless.
    pub documented_as_status: bool,
    /// Deletion waits for a grace period (pods).
    pub graceful: bool,
    /// What happens to dependents when the caller does not say.
    pub dependents: Orphaning,
}

/// When `metadata.generation` counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// Never: what the client sends on creation stays, updates keep the stored value.
    #[default]
    Untouched,
    /// 1 on creation; one more when one of these fields changes. Each is a path; the path `*` stands for everything
    /// outside `metadata`, `kind` and `apiVersion`. Upstream distinguishes an empty collection from none where it compares by
    /// `reflect.DeepEqual`: what is stored has none that is empty.
    Changes {
        /// The fields.
        paths: Vec<Vec<String>>,
        /// Whether an empty collection differs from none.
        counts_empty: bool,
    },
}

impl Generation {
    /// Whether the kind counts at all.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self, Self::Changes { .. })
    }

    /// The object as it is before it is normalized, where what that takes away counts.
    #[must_use]
    pub fn before(&self, new: &Object) -> Option<Object> {
        matches!(self, Self::Changes { counts_empty: true, .. }).then(|| new.clone())
    }

    /// Returns true if normalization removed empty collections that are significant.
    #[must_use]
    pub fn lost_empty(&self, before: &Object, after: &Object) -> bool {
        let Self::Changes { paths, counts_empty: true } = self else { return false };
        paths.iter().any(|path| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            lost_empty(&before.at(&path), &after.at(&path))
        })
    }

    /// True if this change counts: a quantity of the same amount in another spelling is none. Both must be normalized.
    #[must_use]
    pub fn changes(&self, schema: &Schema, new: &Object, old: &Object) -> bool {
        let Self::Changes { paths, .. } = self else { return false };
        paths.iter().any(|path| match path.as_slice() {
            [all] if all == "*" => !same_outside_metadata(new, old),
            path => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                new.get(&path) != old.get(&path) && !schema.same_amounts(&path, new, old)
            }
        })
    }
}

fn lost_empty(before: &Cursor<'_>, after: &Cursor<'_>) -> bool {
    if before.is_present() && !before.is_scalar() && before.is_empty() {
        return !after.is_present();
    }
    before.items().zip(after.items()).any(|(before, after)| lost_empty(&before, &after))
        || before.entries().any(|(name, before)| lost_empty(&before, &after.field(name)))
}

fn same_outside_metadata(new: &Object, old: &Object) -> bool {
    const OUTSIDE: [&str; 3] = ["metadata", "kind", "apiVersion"];
    let content = |o: &Object| {
        let fields: Vec<String> =
            o.map().keys().filter(|k| !OUTSIDE.contains(&k.as_str())).cloned().collect();
        fields
    };
    let fields = content(new);
    fields.len() == content(old).len() && fields.iter().all(|f| new.get(&[f]) == old.get(&[f]))
}

/// What the `status` subresource owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusRule {
    /// Top-level fields that only a write of `status` changes; others keep them, creation clears them.
    pub owns: Vec<String>,
    /// Metadata fields that a write of `status` keeps as stored; all others it saves.
    pub keeps_metadata: Vec<String>,
    /// Whether creation keeps what the client sends (nodes) instead of clearing it.
    pub kept_on_create: bool,
}
