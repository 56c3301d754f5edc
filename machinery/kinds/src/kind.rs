//! Description of a kind for generic code.

use std::sync::Arc;

use portico_machinery::expiration::Lifecycle;
use portico_machinery::gvk::{
    GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource,
};
use portico_machinery::{Cursor, Object};
use portico_schema::Schema;

pub use crate::choice::{DefaultPropagation, NameRule};
use crate::column::ColumnRule;
use crate::ownership::OwnershipFilters;

/// Kind in one served group version.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Plural resource name in paths.
    pub resource: String,
    /// Singular resource name.
    pub singular: String,
    /// Kind of lists, such as `ConfigMapList`.
    pub list_kind: String,
    /// Short names, such as `cm`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// True if objects are namespaced.
    pub namespaced: bool,
    /// Verbs of the resource itself, sorted.
    pub verbs: Arc<[String]>,
    /// Subresources, sorted by name.
    pub subresources: Vec<Subresource>,
    /// Columns of the Table form, in order.
    pub columns: Arc<[ColumnRule]>,
    /// Fields for field selectors, in upstream's order.
    pub selectable_fields: Vec<String>,
    /// Group and resource under which objects are stored. Several served versions and groups can share it.
    pub storage: GroupResource,
    /// Version of the storage group in which objects are stored.
    pub storage_version: String,
    /// Version in which kube-apiserver stores objects. Discovery publishes a hash of it.
    pub upstream_storage_version: String,
    /// Schema of the object.
    pub schema: Schema,
    /// Schema of the list; `None` for kinds that are never listed (reviews, bindings).
    pub list_schema: Option<Schema>,
    /// True if objects are stored. Verbs of other kinds are actions of the registry.
    pub stored: bool,
    /// Rule for the names of objects.
    pub name_rule: NameRule,
    /// True if kube-apiserver does not cache the kind. Its error for a future revision then has no retry delay.
    pub uncached: bool,
    /// True if PUT of a missing object creates it.
    pub allow_create_on_update: bool,
    /// True if an update without resourceVersion is accepted, so that the last write takes effect.
    pub allow_unconditional_update: bool,
    /// Rules for deletion.
    pub deletion: DeletionRules,
    /// Rule for `metadata.generation`.
    pub generation: GenerationRule,
    /// Rule for the `status` subresource; `None` for kinds without one.
    pub status: Option<Arc<StatusRule>>,
    /// Filters for the fields that writers can own.
    pub ownership: OwnershipFilters,
    /// True if finalizers without a domain are accepted.
    pub allow_unqualified_finalizers: bool,
    /// True if objects expire, as events do after `--event-ttl`.
    pub expires: bool,
    /// Warning in every response about the kind; empty if there is none.
    pub deprecation_warning: String,
    /// True if the kind is served only if `--runtime-config` enables it.
    pub off_by_default: bool,
    /// Releases that serve the kind.
    pub lifecycle: Lifecycle,
}

impl KindInfo {
    /// True if the table has the columns that kube-apiserver uses for kinds without a printer.
    #[must_use]
    pub fn has_default_columns(&self) -> bool {
        self.columns.iter().map(|rule| rule.column.name.as_str()).eq(["Name", "Created At"])
    }

    /// Returns the group and version.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        self.gvk.group_version()
    }

    /// Returns the group and kind.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    /// Returns the group, version and resource.
    #[must_use]
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.gvk.group, &self.gvk.version, &self.resource)
    }

    /// Returns the group and resource.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.gvk.group, &self.resource)
    }

    /// True if objects are stored in this version.
    #[must_use]
    pub fn is_storage_version(&self) -> bool {
        self.gvk.group == self.storage.group && self.gvk.version == self.storage_version
    }

    /// True if the resource itself has this verb.
    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// Returns the subresource with this name.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}

/// Subresource of a kind.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Name, such as `status`, `scale` or `finalize`.
    pub name: String,
    /// Kind of its requests and responses; usually the kind of the resource.
    pub kind: GroupVersionKind,
    /// Schema of that kind; `None` for options in the query (`PodExecOptions`).
    pub schema: Option<Schema>,
    /// Verbs, sorted.
    pub verbs: Arc<[String]>,
    /// True if requests are proxied to a kubelet or backend.
    pub is_connect: bool,
    /// True if paths below the subresource are served.
    pub has_subpaths: bool,
    /// Query parameters.
    pub parameters: Vec<QueryParameter>,
}

/// Query parameter of a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryParameter {
    /// Name in the query.
    pub name: String,
    /// Name among the shared parameters of OpenAPI version 2.
    pub shared_name: String,
    /// Type: `string`, `integer` or `boolean`.
    pub ty: String,
    /// Description for users.
    pub description: String,
}

impl Subresource {
    /// True if the subresource has this verb.
    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }
}

/// Rules for the deletion of objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionRules {
    /// True if a DELETE that removes the object returns its last state instead of a Status.
    pub returns_object: bool,
    /// True if OpenAPI documents specify a Status as response nevertheless.
    pub documented_as_status: bool,
    /// True if deletion has a grace period (pods).
    pub has_grace_period: bool,
    /// Treatment of dependents if the request specifies no propagation policy.
    pub default_propagation: DefaultPropagation,
}

/// Rule for `metadata.generation`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GenerationRule {
    /// The server does not set the generation: creation stores the value of the client, updates keep the stored value.
    #[default]
    Unmanaged,
    /// The generation is 1 on creation and increases when one of these fields changes. The path `*` matches everything outside
    /// `metadata`, `kind` and `apiVersion`. Where upstream compares with `reflect.DeepEqual`, it distinguishes an empty
    /// collection from an absent one; stored objects have no empty collections.
    Managed {
        /// Paths of the fields.
        paths: Vec<Vec<String>>,
        /// True if an empty collection differs from an absent one.
        counts_empty: bool,
    },
}

impl GenerationRule {
    /// True if the server sets the generation.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        matches!(self, Self::Managed { .. })
    }

    /// Returns a copy of the object before normalization, if the removal of empty collections is significant.
    #[must_use]
    pub fn before_normalization(&self, new: &Object) -> Option<Object> {
        matches!(self, Self::Managed { counts_empty: true, .. }).then(|| new.clone())
    }

    /// Returns true if normalization removed empty collections that are significant.
    #[must_use]
    pub fn lost_empty(&self, before: &Object, after: &Object) -> bool {
        let Self::Managed { paths, counts_empty: true } = self else { return false };
        paths.iter().any(|path| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            lost_empty(&before.at(&path), &after.at(&path))
        })
    }

    /// True if the difference increases the generation. Quantities of the same amount are equal. Both objects must be normalized.
    #[must_use]
    pub fn is_generation_change(&self, schema: &Schema, new: &Object, old: &Object) -> bool {
        let Self::Managed { paths, .. } = self else { return false };
        paths.iter().any(|path| match path.as_slice() {
            [all] if all == "*" => !same_outside_metadata(new, old),
            path => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                new.get(&path) != old.get(&path) && !schema.is_semantically_equal(&path, new, old)
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
    const EXCLUDED_FIELDS: [&str; 3] = ["metadata", "kind", "apiVersion"];
    let content = |o: &Object| {
        let fields: Vec<String> =
            o.map().keys().filter(|k| !EXCLUDED_FIELDS.contains(&k.as_str())).cloned().collect();
        fields
    };
    let fields = content(new);
    fields.len() == content(old).len() && fields.iter().all(|f| new.get(&[f]) == old.get(&[f]))
}

/// Rule for the `status` subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusRule {
    /// Top-level fields that only writes of `status` change. Other updates keep them, and creation clears them.
    pub owned_fields: Vec<String>,
    /// Metadata fields that a write of `status` does not change. It changes all others.
    pub kept_metadata: Vec<String>,
    /// True if creation stores the fields that the client sends (nodes) instead of clearing them.
    pub kept_on_create: bool,
}
