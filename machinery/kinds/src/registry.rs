//! All built-in kinds, found by what requests and stored objects name.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use portico_machinery::gvk::{GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
use portico_schema::{Schema, TypeSet};

use crate::group::GroupVersionInfo;
use crate::kind::KindInfo;
use crate::load::{self, LoadError};

/// The built-in kinds.
#[derive(Debug, Default)]
pub struct Kinds {
    pub(crate) kinds: Vec<Arc<KindInfo>>,
    pub(crate) by_resource: HashMap<GroupVersionResource, usize>,
    pub(crate) by_kind: HashMap<GroupVersionKind, usize>,
    pub(crate) by_storage: HashMap<GroupResource, usize>,
    pub(crate) groups: Vec<GroupVersionInfo>,
    pub(crate) types: Arc<TypeSet>,
}

impl Kinds {
    /// The embedded kinds, read at first ask and shared from then on.
    ///
    /// # Errors
    /// [`LoadError`] when the embedded data do not fit together, which a test of this crate rules out.
    pub fn builtin() -> Result<Arc<Self>, LoadError> {
        static BUILTIN: OnceLock<Result<Arc<Kinds>, LoadError>> = OnceLock::new();
        BUILTIN.get_or_init(|| load::builtin().map(Arc::new)).clone()
    }

    /// The kind that is served under this resource.
    #[must_use]
    pub fn by_resource(&self, resource: &GroupVersionResource) -> Option<&Arc<KindInfo>> {
        self.by_resource.get(resource).map(|at| &self.kinds[*at])
    }

    /// The kind of this name.
    #[must_use]
    pub fn by_kind(&self, kind: &GroupVersionKind) -> Option<&Arc<KindInfo>> {
        self.by_kind.get(kind).map(|at| &self.kinds[*at])
    }

    /// The kind, in its storage version, whose objects are stored under this resource.
    #[must_use]
    pub fn by_storage(&self, storage: &GroupResource) -> Option<&Arc<KindInfo>> {
        self.by_storage.get(storage).map(|at| &self.kinds[*at])
    }

    /// All kinds in discovery order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KindInfo>> {
        self.kinds.iter()
    }

    /// The kinds of one group version, sorted by resource.
    pub fn of_group_version<'a>(&'a self, gv: &'a GroupVersion) -> impl Iterator<Item = &'a Arc<KindInfo>> {
        self.iter().filter(move |kind| kind.gvk.group == gv.group && kind.gvk.version == gv.version)
    }

    /// Group versions that serve at least one kind, in discovery order.
    pub fn served(&self) -> impl Iterator<Item = &GroupVersionInfo> {
        self.groups.iter().filter(|info| self.of_group_version(&info.group_version).next().is_some())
    }

    /// The priorities of a built-in group version, served or not.
    #[must_use]
    pub fn priority(&self, gv: &GroupVersion) -> Option<&GroupVersionInfo> {
        self.groups.iter().find(|info| info.group_version == *gv)
    }

    /// All built-in group versions with their priorities, by falling priority.
    #[must_use]
    pub fn priorities(&self) -> &[GroupVersionInfo] {
        &self.groups
    }

    /// The schema of a type that is no served kind: `DeleteOptions`, `Status`, a list.
    #[must_use]
    pub fn schema(&self, type_name: &str) -> Option<Schema> {
        Schema::named(&self.types, type_name)
    }

    /// The schema of a type of `meta/v1` by its short name, `DeleteOptions`.
    #[must_use]
    pub fn meta(&self, short_name: &str) -> Option<Schema> {
        self.schema(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{short_name}"))
    }

    /// All types.
    #[must_use]
    pub fn types(&self) -> &Arc<TypeSet> {
        &self.types
    }
}
