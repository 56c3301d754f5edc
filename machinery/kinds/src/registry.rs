//! All built-in kinds, found by what requests and stored objects name.

use std::collections::HashMap;
use std::sync::Arc;

use portico_machinery::gvk::{GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
use portico_schema::{Schema, TypeSet};

use crate::error::LoadError;
use crate::group::GroupVersionInfo;
use crate::kind::KindInfo;

/// The built-in kinds.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Arc<KindInfo>>,
    by_resource: HashMap<GroupVersionResource, usize>,
    by_kind: HashMap<GroupVersionKind, usize>,
    /// Also of storage versions that are not served: objects are stored in them all the same.
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
        let place = |info: &KindInfo| groups.iter().position(|g| g.group_version == info.group_version());
        let mut placed = Vec::with_capacity(infos.len());
        for info in infos {
            let at = place(&info).ok_or_else(|| LoadError::Missing {
                kind: info.gvk.kind.clone(),
                name: info.group_version().to_string(),
            })?;
            // The core group has a root of its own, before all others.
            placed.push(((!info.gvk.group.is_empty(), at, info.resource.clone()), info));
        }
        placed.sort_by(|a, b| a.0.cmp(&b.0));
        let kinds: Vec<Arc<KindInfo>> = placed.into_iter().map(|(_, info)| info).collect();
        let index = || kinds.iter().enumerate();
        Ok(Self {
            by_resource: index().map(|(at, info)| (info.gvr(), at)).collect(),
            by_kind: index().map(|(at, info)| (info.gvk.clone(), at)).collect(),
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
        self.by_storage.get(storage)
    }

    /// The resources of the served kinds that share the storage of these objects, this one among them, in discovery
    /// order: one object appears as each of them.
    pub fn equivalents<'a>(
        &'a self,
        resource: &'a GroupResource,
    ) -> impl Iterator<Item = &'a Arc<KindInfo>> + use<'a> {
        let storage = self.iter().find(|info| info.group_resource() == *resource).map(|info| &info.storage);
        self.iter().filter(move |info| info.stored && Some(&info.storage) == storage)
    }

    /// All kinds in their storage versions, in no order.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<KindInfo>> {
        self.by_storage.values()
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
