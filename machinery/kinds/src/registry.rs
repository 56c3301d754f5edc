//! Index of all built-in kinds.

use std::collections::HashMap;
use std::sync::Arc;

use portico_machinery::gvk::{GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
use portico_schema::{Schema, TypeSet};

use crate::error::LoadError;
use crate::group::GroupVersionInfo;
use crate::kind::KindInfo;

/// Built-in kinds.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Arc<KindInfo>>,
    by_resource: HashMap<GroupVersionResource, usize>,
    by_kind: HashMap<GroupVersionKind, usize>,
    /// Kinds by storage resource, including storage versions that are not served.
    by_storage: HashMap<GroupResource, Arc<KindInfo>>,
    groups: Vec<GroupVersionInfo>,
    types: Arc<TypeSet>,
}

impl Kinds {
    /// Sorts the kinds into discovery order and indexes them.
    pub(crate) fn new(
        infos: Vec<Arc<KindInfo>>,
        groups: Vec<GroupVersionInfo>,
        types: Arc<TypeSet>,
    ) -> Result<Self, LoadError> {
        let position_of =
            |info: &KindInfo| groups.iter().position(|g| g.group_version == info.group_version());
        let mut positioned = Vec::with_capacity(infos.len());
        for info in infos {
            let index = position_of(&info).ok_or_else(|| LoadError::Missing {
                kind: info.gvk.kind.clone(),
                name: info.group_version().to_string(),
            })?;
            // The core group has a separate root, before all others.
            positioned.push(((!info.gvk.group.is_empty(), index, info.resource.clone()), info));
        }
        positioned.sort_by(|a, b| a.0.cmp(&b.0));
        let kinds: Vec<Arc<KindInfo>> = positioned.into_iter().map(|(_, info)| info).collect();
        let index = || kinds.iter().enumerate();
        Ok(Self {
            by_resource: index().map(|(index, info)| (info.gvr(), index)).collect(),
            by_kind: index().map(|(index, info)| (info.gvk.clone(), index)).collect(),
            by_storage: index()
                .filter(|(_, info)| info.is_storage_version())
                .map(|(_, info)| (info.storage.clone(), Arc::clone(info)))
                .collect(),
            kinds,
            groups,
            types,
        })
    }

    pub(crate) fn retain(
        self: &Arc<Self>,
        serves: impl Fn(&KindInfo) -> bool,
    ) -> Result<Arc<Self>, LoadError> {
        if self.iter().all(|info| serves(info)) {
            return Ok(Arc::clone(self));
        }
        let infos = self.iter().filter(|info| serves(info)).cloned().collect();
        let mut kinds = Self::new(infos, self.groups.clone(), self.types.clone())?;
        kinds.by_storage.clone_from(&self.by_storage);
        Ok(Arc::new(kinds))
    }

    /// Returns the kind that is served under this resource.
    #[must_use]
    pub fn by_resource(&self, resource: &GroupVersionResource) -> Option<&Arc<KindInfo>> {
        self.by_resource.get(resource).map(|index| &self.kinds[*index])
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn by_kind(&self, kind: &GroupVersionKind) -> Option<&Arc<KindInfo>> {
        self.by_kind.get(kind).map(|index| &self.kinds[*index])
    }

    /// Returns the kind, in its storage version, whose objects are stored under this resource.
    #[must_use]
    pub fn by_storage(&self, storage: &GroupResource) -> Option<&Arc<KindInfo>> {
        self.by_storage.get(storage)
    }

    /// Returns the served resources that share the storage of `resource`, including `resource` itself, in discovery order. Each
    /// object exists under all of these resources.
    pub fn equivalents<'a>(
        &'a self,
        resource: &'a GroupResource,
    ) -> impl Iterator<Item = &'a Arc<KindInfo>> + use<'a> {
        let storage = self.iter().find(|info| info.group_resource() == *resource).map(|info| &info.storage);
        self.iter().filter(move |info| info.stored && Some(&info.storage) == storage)
    }

    /// Iterates over all kinds in their storage versions, in no particular order.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<KindInfo>> {
        self.by_storage.values()
    }

    /// Iterates over all kinds in discovery order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KindInfo>> {
        self.kinds.iter()
    }

    /// Iterates over the kinds of one group version, sorted by resource.
    pub fn of_group_version<'a>(&'a self, gv: &'a GroupVersion) -> impl Iterator<Item = &'a Arc<KindInfo>> {
        self.iter().filter(move |kind| kind.gvk.group == gv.group && kind.gvk.version == gv.version)
    }

    /// Iterates over the group versions that serve at least one kind, in discovery order.
    pub fn served_group_versions(&self) -> impl Iterator<Item = &GroupVersionInfo> {
        self.groups.iter().filter(|info| self.of_group_version(&info.group_version).next().is_some())
    }

    /// Returns the priorities of a built-in group version, even if it is not served.
    #[must_use]
    pub fn priority(&self, gv: &GroupVersion) -> Option<&GroupVersionInfo> {
        self.groups.iter().find(|info| info.group_version == *gv)
    }

    /// Returns all built-in group versions, by descending priority.
    #[must_use]
    pub fn priorities(&self) -> &[GroupVersionInfo] {
        &self.groups
    }

    /// Returns the schema of a type that is not a served kind, such as `DeleteOptions`, `Status` or a list.
    #[must_use]
    pub fn schema(&self, type_name: &str) -> Option<Schema> {
        Schema::named(&self.types, type_name)
    }

    /// Returns the schema of a type of `meta/v1` by its short name, such as `DeleteOptions`.
    #[must_use]
    pub fn meta_schema(&self, short_name: &str) -> Option<Schema> {
        self.schema(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{short_name}"))
    }

    /// Returns all types.
    #[must_use]
    pub fn types(&self) -> &Arc<TypeSet> {
        &self.types
    }
}
