//! What is served: each kind with its strategy, its storage and what readers of its bytes need to know.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use portico_kinds::{KindInfo, Kinds};
use portico_machinery::{GroupResource, GroupVersionKind, GroupVersionResource, Object, Status};
use portico_schema::{DecodeError, Schema};
use portico_store::{IndexError, Indexed, Indexer, MetadataIndexer, Resource};

use crate::Result;
use crate::custom::{self, Custom, ScalePaths};
use crate::registry::Part;
use crate::strategy::{self, Moment, Strategy};
use crate::table::{ResourceTable, Row};
use crate::views::Viewed;

/// A kind as one group version serves it.
pub struct ServedResource {
    /// What data says.
    pub info: Arc<KindInfo>,
    /// What code says.
    pub strategy: &'static dyn Strategy,
    /// Code behind its subresources, and behind its collection if that keeps nothing.
    pub(crate) row: Row,
    /// Where objects are stored.
    pub storage: Resource,
    /// The kind in its storage version, when that is another one.
    pub(crate) stored_as: Option<Arc<KindInfo>>,
    /// Group and resource, for messages.
    pub resource: GroupResource,
    /// `apiVersion`.
    pub api_version: String,
    /// Tells this description from any other, also from an older one of the same kind: part of cache keys.
    pub(crate) id: u32,
    /// How the JSON of an object of this version begins: items of lists leave it out. Empty where they do not.
    pub(crate) head: Vec<u8>,
    /// Selectable fields that the store indexes.
    pub(crate) fields: Vec<Arc<str>>,
    /// Subresources that show a part of an object as another kind.
    pub(crate) views: Vec<Viewed>,
    /// What a custom resource is besides.
    pub(crate) custom: Option<Custom>,
    /// Whether objects can be written as protobuf: those of custom resources and what is shown of them cannot.
    pub(crate) sealed: bool,
}

impl ServedResource {
    /// The kind of a view. Its objects are never stored.
    pub(crate) fn of_view(info: KindInfo, sealed: bool) -> Self {
        Self { sealed, ..Self::described(Arc::new(info), None, strategy::plain()) }
    }

    fn new(info: Arc<KindInfo>, kinds: &Kinds, row: &Row) -> Self {
        let stored_as = kinds.by_storage(&info.storage).filter(|_| !info.is_storage_version()).cloned();
        let views = Viewed::all(&info, row);
        Self { views, row: row.clone(), ..Self::described(info, stored_as, row.strategy()) }
    }

    /// A version of a custom resource: its objects are brought into the stored version at the store's edge.
    pub(crate) fn of_custom(info: KindInfo, scale: Option<&ScalePaths>, custom: Custom) -> Self {
        let views = scale.and_then(|paths| Viewed::scale(&info, paths)).into_iter().collect();
        let described = Self::described(Arc::new(info), None, strategy::plain());
        Self { views, head: Vec::new(), custom: Some(custom), sealed: false, ..described }
    }

    fn described(
        info: Arc<KindInfo>,
        stored_as: Option<Arc<KindInfo>>,
        strategy: &'static dyn Strategy,
    ) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let api_version = info.group_version().to_string();
        let head = format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",", info.gvk.kind).into_bytes();
        let base = stored_as.as_ref().unwrap_or(&info);
        Self {
            strategy,
            row: Row::default(),
            storage: Resource::from(info.storage.clone()),
            resource: info.group_resource(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            fields: indexed_fields(base),
            info,
            stored_as,
            api_version,
            head,
            views: Vec::new(),
            custom: None,
            sealed: true,
        }
    }

    /// The view behind a part of the object, when it is one.
    pub(crate) fn view(&self, part: Part<'_>) -> Option<&Viewed> {
        match part {
            Part::Main => None,
            Part::Subresource(name) => self.views.iter().find(|viewed| viewed.name == name),
        }
    }

    /// The kind in its storage version.
    pub fn stored_info(&self) -> &Arc<KindInfo> {
        self.stored_as.as_ref().unwrap_or(&self.info)
    }

    /// The kind that a part of the object takes and answers with.
    pub(crate) fn kind_of(&self, part: Part<'_>) -> Result<(&GroupVersionKind, &Schema)> {
        let Part::Subresource(name) = part else { return Ok((&self.info.gvk, &self.info.schema)) };
        let subresource = self.info.subresource(name);
        let kind = subresource.and_then(|s| Some((&s.kind, s.schema.as_ref()?)));
        kind.ok_or_else(|| Box::new(Status::no_method()))
    }

    /// The types of its metadata.
    pub(crate) fn metadata_schema(&self) -> Option<Schema> {
        self.info.schema.of_field("metadata")
    }

    /// 405 unless the resource has this verb.
    pub(crate) fn require(&self, verb: &str) -> Result<()> {
        if self.info.has_verb(verb) {
            return Ok(());
        }
        Err(Box::new(Status::method_not_supported(&self.resource, verb)))
    }

    /// Warnings for whoever writes this part of an object.
    pub(crate) fn warnings(&self, part: Part<'_>, new: &Object, old: Option<&Object>) -> Vec<String> {
        match (part, old) {
            _ if self.custom.is_some() => custom::warnings(new, old),
            (Part::Main, _) => self.strategy.warnings(new, old),
            (Part::Subresource("status"), Some(old)) => self.strategy.status_warnings(new, old),
            (Part::Subresource(_), _) => Vec::new(),
        }
    }

    /// 400 for a body that upstream's conversion cannot read.
    pub(crate) fn check_readable(&self, object: &Object) -> Result<()> {
        let Some(error) = self.strategy.unreadable(object) else { return Ok(()) };
        let (found, expected) = (self.info.gvk.clone(), self.info.gvk.kind.clone());
        Err(Box::new(DecodeError::CannotBeHandled { found, expected, error }.status()))
    }

    /// Makes what a client sent whole: every default, in the storage version. Doing it again changes nothing.
    pub(crate) fn complete(&self, object: &mut Object, moment: Moment) {
        self.info.schema.default(object);
        self.to_storage(object);
        self.strategy.default(object, moment);
    }

    /// Brings an object of this version into the storage version.
    pub(crate) fn to_storage(&self, object: &mut Object) {
        if let Some(stored) = &self.stored_as {
            self.strategy.to_storage(object);
            object.set(&["apiVersion"], stored.group_version().to_string());
        }
    }

    /// Brings a stored object into this version.
    pub(crate) fn to_version(&self, object: &mut Object) {
        if self.stored_as.is_some() {
            self.strategy.to_version(object);
            object.set(&["apiVersion"], &self.api_version);
            self.info.schema.normalise(object);
        }
    }
}

fn indexed_fields(info: &KindInfo) -> Vec<Arc<str>> {
    info.selectable.iter().filter(|f| !f.starts_with("metadata.")).map(|f| Arc::from(f.as_str())).collect()
}

/// Everything that is served, found by what requests name.
#[derive(Default)]
pub struct ResourceIndex {
    by_resource: HashMap<GroupVersionResource, Arc<ServedResource>>,
    by_kind: HashMap<GroupVersionKind, Arc<ServedResource>>,
    preferred: HashMap<GroupResource, Arc<ServedResource>>,
}

impl ResourceIndex {
    /// The built-in kinds, each with its row of the table.
    #[must_use]
    pub fn new(kinds: &Kinds, table: &ResourceTable) -> Self {
        let mut catalogue = Self::default();
        let plain = Row::default();
        for info in kinds.iter() {
            let row = table.row(&info.gvk.group, &info.resource).unwrap_or(&plain);
            let served = Arc::new(ServedResource::new(info.clone(), kinds, row));
            let slot = catalogue.preferred.entry(served.resource.clone());
            slot.or_insert_with(|| served.clone());
            catalogue.by_kind.insert(info.gvk.clone(), served.clone());
            catalogue.by_resource.insert(info.gvr(), served);
        }
        catalogue
    }

    pub(crate) fn by_resource(&self, resource: &GroupVersionResource) -> Option<&Arc<ServedResource>> {
        self.by_resource.get(resource)
    }

    /// A kind in one version.
    #[must_use]
    pub fn by_kind(&self, kind: &GroupVersionKind) -> Option<&Arc<ServedResource>> {
        self.by_kind.get(kind)
    }

    /// Storage resources of kinds whose objects expire, each once.
    pub(crate) fn expiring(&self) -> Vec<Resource> {
        let expire = self.by_resource.values().filter(|s| s.info.expires && s.info.is_storage_version());
        expire.map(|served| served.storage.clone()).collect()
    }

    /// The resource in the version that our own code speaks: the first that is served.
    pub(crate) fn preferred(&self, resource: &GroupResource) -> Option<&Arc<ServedResource>> {
        self.preferred.get(resource)
    }

    /// Whether kinds of this group are built in.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.by_kind.keys().any(|kind| kind.group == group)
    }
}

/// The indexer that a store of these kinds loads with.
pub struct KindIndexer {
    fields: HashMap<GroupResource, (&'static dyn Strategy, Vec<Arc<str>>)>,
}

impl KindIndexer {
    /// An indexer for these kinds, whose strategies know their selectable fields.
    #[must_use]
    pub fn new(kinds: &Kinds, table: &ResourceTable) -> Self {
        let fields = kinds
            .stored()
            .map(|info| (info, indexed_fields(info)))
            .filter(|(_, fields)| !fields.is_empty())
            .map(|(info, fields)| {
                let row = table.row(&info.gvk.group, &info.resource);
                let strategy = row.map_or_else(strategy::plain, Row::strategy);
                (info.storage.clone(), (strategy, fields))
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

/// The values of an object's selectable fields, in the storage version.
pub(crate) fn field_values(
    strategy: &dyn Strategy,
    fields: &[Arc<str>],
    object: &Object,
) -> Box<[(Arc<str>, Box<str>)]> {
    fields.iter().map(|f| (f.clone(), Box::from(&*strategy.field(object, f)))).collect()
}
