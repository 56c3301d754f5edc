//! Index of the built-in resources: lookup by the names that requests use, and field indexes for the store.

use std::collections::HashMap;
use std::sync::Arc;

use portico_kinds::{KindInfo, Kinds};
use portico_machinery::{GroupResource, GroupVersionKind, GroupVersionResource, Object};
use portico_store::{IndexError, Indexed, Indexer, MetadataIndexer, Resource};

use crate::disabled_fields::{DisabledFeature, DisabledFields};
use crate::resource_map::ResourceMap;
use crate::scale::ScaleSelector;
use crate::served_resource::{ServedResource, field_values, indexed_fields};
use crate::strategy::{FieldStrategy, Strategies};

/// Code of one resource, in addition to its data.
#[derive(Clone, Copy, Default)]
struct ResourceRules {
    strategies: Strategies,
    scale: Option<ScaleSelector>,
}

/// Strategies and Scale subresources of built-in resources.
#[derive(Clone, Default)]
pub(crate) struct StrategyTable {
    rules: ResourceMap<ResourceRules>,
    disabled: ResourceMap<Vec<DisabledFeature>>,
}

impl StrategyTable {
    pub(crate) fn add(
        &mut self,
        (group, resource): (&'static str, &'static str),
        strategies: Strategies,
        scale: Option<ScaleSelector>,
    ) {
        *self.rules.entry(group, resource) = ResourceRules { strategies, scale };
    }

    /// Turns off the fields of a disabled feature.
    pub(crate) fn turn_off(
        &mut self,
        (group, resource): (&'static str, &'static str),
        feature: DisabledFeature,
    ) {
        self.disabled.entry(group, resource).push(feature);
    }

    fn disabled_fields_of(&self, resource: &GroupResource) -> DisabledFields {
        self.disabled.get(resource).map(|fields| fields.as_slice().into()).unwrap_or_default()
    }

    /// Strategies and Scale selector of a resource; defaults for resources without code.
    fn for_resource(&self, resource: &GroupResource) -> (Strategies, Option<ScaleSelector>) {
        let described = self.rules.get(resource).copied().unwrap_or_default();
        (described.strategies, described.scale)
    }
}

/// Index of all served built-in resources.
#[derive(Default)]
pub struct ResourceIndex {
    by_resource: HashMap<GroupVersionResource, Arc<ServedResource>>,
    by_kind: HashMap<GroupVersionKind, Arc<ServedResource>>,
    preferred: HashMap<GroupResource, Arc<ServedResource>>,
    by_storage: HashMap<GroupResource, Vec<Arc<ServedResource>>>,
}

impl ResourceIndex {
    /// Index of the built-in kinds with their strategies.
    pub(crate) fn new(kinds: &Kinds, strategies: &StrategyTable) -> Self {
        let mut index = Self::default();
        for info in kinds.iter() {
            let (own, scale) = strategies.for_resource(&info.group_resource());
            let mut served_resource = ServedResource::of_builtin(info.clone(), kinds, own, scale);
            served_resource.disabled = strategies.disabled_fields_of(&info.group_resource());
            let served_resource = Arc::new(served_resource);
            let slot = index.preferred.entry(served_resource.resource.clone());
            slot.or_insert_with(|| served_resource.clone());
            index.by_storage.entry(info.storage.clone()).or_default().push(served_resource.clone());
            index.by_kind.insert(info.gvk.clone(), served_resource.clone());
            index.by_resource.insert(info.gvr(), served_resource);
        }
        index
    }

    pub(crate) fn by_resource(&self, resource: &GroupVersionResource) -> Option<&Arc<ServedResource>> {
        self.by_resource.get(resource)
    }

    /// The kind in one version.
    #[must_use]
    pub fn by_kind(&self, kind: &GroupVersionKind) -> Option<&Arc<ServedResource>> {
        self.by_kind.get(kind)
    }

    /// Kinds with this plural or singular resource name, version and group; an empty group matches all groups.
    pub(crate) fn kinds_for(&self, group: &str, version: &str, resource: &str) -> Vec<GroupVersionKind> {
        let matches_names = |info: &KindInfo| {
            (info.resource == resource || info.singular == resource)
                && info.gvk.version == version
                && (group.is_empty() || info.gvk.group == group)
        };
        let all = self.by_resource.values().map(|served_resource| &served_resource.info);
        all.filter(|info| matches_names(info)).map(|info| info.gvk.clone()).collect()
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &KindInfo> {
        self.by_resource.values().map(|served_resource| &*served_resource.info)
    }

    /// Served resources that share a storage resource.
    pub(crate) fn of_storage(&self, storage: &GroupResource) -> &[Arc<ServedResource>] {
        self.by_storage.get(storage).map_or(&[], Vec::as_slice)
    }

    /// Storage resources of kinds whose objects expire, without duplicates.
    pub(crate) fn expiring(&self) -> Vec<Resource> {
        let expire = self.by_resource.values().filter(|s| s.info.expires && s.info.is_storage_version());
        expire.map(|served_resource| served_resource.storage.clone()).collect()
    }

    /// The resource in the first served version, which internal callers use.
    pub(crate) fn preferred(&self, resource: &GroupResource) -> Option<&Arc<ServedResource>> {
        self.preferred.get(resource)
    }

    /// True if the group has built-in kinds.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.by_kind.keys().any(|kind| kind.group == group)
    }
}

/// Indexer for a store of these kinds.
pub struct KindIndexer {
    fields: HashMap<GroupResource, (&'static dyn FieldStrategy, Vec<Arc<str>>)>,
}

impl KindIndexer {
    /// Indexer for these kinds; the strategies extract their selectable fields.
    pub(crate) fn new(kinds: &Kinds, strategies: &StrategyTable) -> Self {
        let fields = kinds
            .stored()
            .map(|info| (info, indexed_fields(info)))
            .filter(|(_, fields)| !fields.is_empty())
            .map(|(info, fields)| {
                let (strategies, _) = strategies.for_resource(&info.group_resource());
                (info.storage.clone(), (strategies.fields, fields))
            })
            .collect();
        Self { fields }
    }
}

impl Indexer for KindIndexer {
    fn index(&self, resource: &GroupResource, json: &[u8]) -> std::result::Result<Indexed, IndexError> {
        let mut indexed = MetadataIndexer.index(resource, json)?;
        if let Some((strategy, fields)) = self.fields.get(resource) {
            let object = Object::from_json(json).map_err(|e| IndexError(e.to_string()))?;
            indexed.fields = field_values(*strategy, fields, &object);
        }
        Ok(indexed)
    }
}
