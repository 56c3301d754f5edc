//! Served resources: a kind with its strategies, its storage, and properties that encoders of its objects need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use portico_kinds::{KindInfo, Kinds, NameRule, Subresource};
use portico_machinery::{GroupResource, GroupVersionKind, Object, Status};
use portico_schema::{DecodeError, Schema};
use portico_store::Resource;

use crate::Result;
use crate::call::Target;
use crate::custom::{self, CustomVersion, ScalePaths};
use crate::disabled_fields::DisabledFields;
use crate::scale::{Scale, ScaleSelector};
use crate::strategy::{FieldStrategy, RequestTime, Strategies};
use crate::verb_types::ObjectPart;
use crate::view::View;

/// Kind as one group version serves it.
pub struct ServedResource {
    /// Properties that data defines.
    pub info: Arc<KindInfo>,
    /// Behavior that code defines.
    pub strategies: Strategies,
    /// Resource under which objects are stored.
    pub storage: Resource,
    /// Kind in its storage version, if that is a different version.
    pub(crate) storage_kind: Option<Arc<KindInfo>>,
    /// Group and resource, for messages.
    pub resource: GroupResource,
    /// `apiVersion` of the objects.
    pub api_version: String,
    /// Unique ID of this description, also among older ones of the same kind; part of cache keys.
    pub(crate) id: u32,
    /// Start of the JSON of an object in this version, which list items omit; empty if they do not.
    pub(crate) json_prefix: Vec<u8>,
    /// Fields of disabled features.
    pub(crate) disabled: DisabledFields,
    /// Selectable fields that the store indexes.
    pub(crate) fields: Vec<Arc<str>>,
    /// Subresources that show a part of an object as another kind.
    pub(crate) views: Vec<ServedView>,
    /// Properties of a custom resource.
    pub(crate) custom: Option<CustomVersion>,
    /// True if objects can be encoded as protobuf; false for custom resources and their views.
    pub(crate) has_protobuf: bool,
}

impl ServedResource {
    /// True if a CustomResourceDefinition defines the kind.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Namespace of the objects that a target addresses.
    ///
    /// # Errors
    /// Status 404 if the scope of the target differs from the scope of the kind: permissions in a namespace must not apply to
    /// cluster-scoped objects.
    pub fn namespace_of<'a>(&self, target: &'a Target) -> Result<&'a str> {
        let (namespace, name) = (target.namespace.as_str(), target.name.as_str());
        // Path grammar: below /namespaces/x the path itself names x as the namespace.
        let is_own_namespace = target.resource == "namespaces" && namespace == name;
        match (self.info.namespaced, namespace.is_empty()) {
            (true, true) if !name.is_empty() => Err(Box::new(Status::route_not_found())),
            (false, false) if is_own_namespace => Ok(""),
            (false, false) => Err(Box::new(Status::route_not_found())),
            _ => Ok(namespace),
        }
    }

    /// Served resource of a view, whose objects are never stored.
    pub(crate) fn of_view(info: KindInfo, has_protobuf: bool) -> Self {
        Self { has_protobuf, ..Self::with_defaults(Arc::new(info), None, Strategies::default()) }
    }

    /// Served version of a built-in kind; with a selector it also has the view `scale`.
    pub(crate) fn of_builtin(
        info: Arc<KindInfo>,
        kinds: &Kinds,
        strategies: Strategies,
        scale: Option<ScaleSelector>,
    ) -> Self {
        let stored_as = kinds.by_storage(&info.storage).filter(|_| !info.is_storage_version()).cloned();
        let views = ServedView::all(&info, scale);
        Self { views, ..Self::with_defaults(info, stored_as, strategies) }
    }

    /// Served version of a custom resource. Its objects are converted to the stored version when they are written.
    pub(crate) fn of_custom(info: KindInfo, scale: Option<&ScalePaths>, custom: CustomVersion) -> Self {
        let views = scale.and_then(|paths| ServedView::scale(&info, paths)).into_iter().collect();
        let described = Self::with_defaults(Arc::new(info), None, Strategies::default());
        Self { views, json_prefix: Vec::new(), custom: Some(custom), has_protobuf: false, ..described }
    }

    fn with_defaults(
        info: Arc<KindInfo>,
        storage_kind: Option<Arc<KindInfo>>,
        strategies: Strategies,
    ) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let api_version = info.group_version().to_string();
        let json_prefix =
            format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",", info.gvk.kind).into_bytes();
        let base = storage_kind.as_ref().unwrap_or(&info);
        Self {
            strategies,
            storage: Resource::from(info.storage.clone()),
            resource: info.group_resource(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            fields: indexed_fields(base),
            info,
            storage_kind,
            api_version,
            json_prefix,
            disabled: DisabledFields::default(),
            views: Vec::new(),
            custom: None,
            has_protobuf: true,
        }
    }

    /// View of a part of the object, if that part is a view.
    pub(crate) fn view(&self, part: ObjectPart<'_>) -> Option<&ServedView> {
        match part {
            ObjectPart::Main => None,
            ObjectPart::Subresource(name) => self.views.iter().find(|viewed| viewed.name == name),
        }
    }

    /// Kind in its storage version.
    pub fn stored_info(&self) -> &Arc<KindInfo> {
        self.storage_kind.as_ref().unwrap_or(&self.info)
    }

    /// Kind of the bodies that a part of the object accepts and returns.
    pub(crate) fn kind_of(&self, part: ObjectPart<'_>) -> Result<(&GroupVersionKind, &Schema)> {
        let ObjectPart::Subresource(name) = part else { return Ok((&self.info.gvk, &self.info.schema)) };
        let subresource = self.info.subresource(name);
        let kind = subresource.and_then(|s| Some((&s.kind, s.schema.as_ref()?)));
        kind.ok_or_else(|| Box::new(Status::method_not_allowed()))
    }

    /// Types of the metadata.
    pub(crate) fn metadata_schema(&self) -> Option<Schema> {
        self.info.schema.field_schema("metadata")
    }

    /// Status 405 unless the resource has this verb.
    pub(crate) fn require_verb(&self, verb: &str) -> Result<()> {
        if self.info.has_verb(verb) {
            return Ok(());
        }
        Err(Box::new(Status::method_not_supported(&self.resource, verb)))
    }

    /// Warnings for the writer of this part of an object.
    pub(crate) fn warnings(&self, part: ObjectPart<'_>, new: &Object, old: Option<&Object>) -> Vec<String> {
        match (part, old) {
            _ if self.custom.is_some() => custom::warnings(new, old),
            (ObjectPart::Main, _) => self.strategies.main.warnings(new, old),
            (ObjectPart::Subresource("status"), Some(old)) => {
                self.strategies.subresources.status_warnings(new, old)
            }
            (ObjectPart::Subresource(_), _) => Vec::new(),
        }
    }

    /// Status 400 for a body that upstream's conversion cannot read.
    pub(crate) fn check_readable(&self, object: &Object) -> Result<()> {
        let Some(error) = self.strategies.decode.conversion_error(object) else { return Ok(()) };
        let (found, expected) = (self.info.gvk.clone(), self.info.gvk.kind.clone());
        Err(Box::new(DecodeError::CannotBeHandled { found, expected, error }.status()))
    }

    /// Applies all defaults to a received object and converts it to the storage version. Idempotent.
    pub(crate) fn apply_defaults(&self, object: &mut Object, request_time: RequestTime) {
        self.info.schema.default(object);
        self.to_storage(object);
        self.strategies.decode.default(object, request_time);
    }

    /// Converts an object of this version to the storage version.
    pub(crate) fn to_storage(&self, object: &mut Object) {
        if let Some(stored) = &self.storage_kind {
            self.strategies.decode.to_storage(object);
            object.set(&["apiVersion"], stored.group_version().to_string());
        }
    }

    /// Converts a stored object to this version.
    pub fn to_version(&self, object: &mut Object) {
        if self.storage_kind.is_some() {
            self.strategies.decode.to_version(object);
            object.set(&["apiVersion"], &self.api_version);
            self.info.schema.normalize(object);
        }
    }
}

/// Selectable fields that the store indexes.
pub(crate) fn indexed_fields(info: &KindInfo) -> Vec<Arc<str>> {
    info.selectable_fields
        .iter()
        .filter(|f| !f.starts_with("metadata."))
        .map(|f| Arc::from(f.as_str()))
        .collect()
}

/// Values of an object's selectable fields, in the storage version.
pub(crate) fn field_values(
    strategy: &dyn FieldStrategy,
    fields: &[Arc<str>],
    object: &Object,
) -> Box<[(Arc<str>, Box<str>)]> {
    fields.iter().map(|f| (f.clone(), Box::from(&*strategy.field(object, f)))).collect()
}

/// View as served, with its kind described like a resource.
pub(crate) struct ServedView {
    /// Name of the subresource.
    pub(crate) name: String,
    /// Conversion between parent and view.
    pub(crate) view: Box<dyn View>,
    /// Kind of the view.
    pub(crate) served_resource: Arc<ServedResource>,
}

impl ServedView {
    /// All views of a built-in kind.
    fn all(parent: &KindInfo, scale: Option<ScaleSelector>) -> Vec<Self> {
        let scale = scale.and_then(|selector| {
            Self::new(parent, parent.subresource("scale")?, Box::new(Scale::of_pods(selector)))
        });
        scale.into_iter().collect()
    }

    /// View `scale` of a custom resource.
    fn scale(parent: &KindInfo, paths: &ScalePaths) -> Option<Self> {
        Self::new(parent, parent.subresource("scale")?, Box::new(Scale::of_paths(paths)))
    }

    fn new(parent: &KindInfo, subresource: &Subresource, view: Box<dyn View>) -> Option<Self> {
        let schema = subresource.schema.clone()?;
        let info = KindInfo {
            gvk: subresource.kind.clone(),
            columns: view.columns().into(),
            schema,
            name_rule: NameRule::Subdomain,
            subresources: Vec::new(),
            selectable_fields: Vec::new(),
            ..parent.clone()
        };
        let served_resource = ServedResource::of_view(info, view.is_builtin_kind());
        Some(Self { name: subresource.name.clone(), view, served_resource: Arc::new(served_resource) })
    }
}
