//! What is served: a kind with its strategy, its storage and what readers of its bytes need to know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use portico_kinds::{KindInfo, Kinds, NameRule, Subresource};
use portico_machinery::{GroupResource, GroupVersionKind, Object, Status};
use portico_schema::{DecodeError, Schema};
use portico_store::Resource;

use crate::Result;
use crate::call::Target;
use crate::custom::{self, Custom, ScalePaths};
use crate::off_fields::OffFields;
use crate::scale::{Scale, ScaleSelector};
use crate::strategy::{FieldStrategy, Moment, Strategies};
use crate::typed::Part;
use crate::view::View;

/// A kind as one group version serves it.
pub struct ServedResource {
    /// What data defines.
    pub info: Arc<KindInfo>,
    /// What code defines.
    pub strategies: Strategies,
    /// Where objects are stored.
    pub storage: Resource,
    /// The kind in its storage version, when that is another one.
    pub(crate) stored_as: Option<Arc<KindInfo>>,
    /// Group and resource, for messages.
    pub resource: GroupResource,
    /// `apiVersion`.
    pub api_version: String,
    /// Identifies this description among all others, also older ones of the same kind: part of cache keys.
    pub(crate) id: u32,
    /// How the JSON of an object of this version begins: items of lists leave it out. Empty where they do not.
    pub(crate) head: Vec<u8>,
    /// Fields of features that are off.
    pub(crate) off: OffFields,
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
    /// True if a CustomResourceDefinition defines the kind.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Where objects of this kind are that a target names: its namespace.
    ///
    /// # Errors
    /// 404 when the kind lives elsewhere: whoever may do something in a namespace may not do it where there is none.
    pub fn namespace_of<'a>(&self, target: &'a Target) -> Result<&'a str> {
        let (namespace, name) = (target.namespace.as_str(), target.name.as_str());
        // Path grammar: below /namespaces/x the path itself names x as the namespace.
        let own = target.resource == "namespaces" && namespace == name;
        match (self.info.namespaced, namespace.is_empty()) {
            (true, true) if !name.is_empty() => Err(Box::new(Status::no_route())),
            (false, false) if own => Ok(""),
            (false, false) => Err(Box::new(Status::no_route())),
            _ => Ok(namespace),
        }
    }

    /// The kind of a view. Its objects are never stored.
    pub(crate) fn of_view(info: KindInfo, sealed: bool) -> Self {
        Self { sealed, ..Self::described(Arc::new(info), None, Strategies::default()) }
    }

    /// A version of a built-in kind; with a selector its numbers of replicas are shown as a Scale, too.
    pub(crate) fn of_builtin(
        info: Arc<KindInfo>,
        kinds: &Kinds,
        strategies: Strategies,
        scale: Option<ScaleSelector>,
    ) -> Self {
        let stored_as = kinds.by_storage(&info.storage).filter(|_| !info.is_storage_version()).cloned();
        let views = Viewed::all(&info, scale);
        Self { views, ..Self::described(info, stored_as, strategies) }
    }

    /// A version of a custom resource: its objects are brought into the stored version at the store's edge.
    pub(crate) fn of_custom(info: KindInfo, scale: Option<&ScalePaths>, custom: Custom) -> Self {
        let views = scale.and_then(|paths| Viewed::scale(&info, paths)).into_iter().collect();
        let described = Self::described(Arc::new(info), None, Strategies::default());
        Self { views, head: Vec::new(), custom: Some(custom), sealed: false, ..described }
    }

    fn described(info: Arc<KindInfo>, stored_as: Option<Arc<KindInfo>>, strategies: Strategies) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let api_version = info.group_version().to_string();
        let head = format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",", info.gvk.kind).into_bytes();
        let base = stored_as.as_ref().unwrap_or(&info);
        Self {
            strategies,
            storage: Resource::from(info.storage.clone()),
            resource: info.group_resource(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            fields: indexed_fields(base),
            info,
            stored_as,
            api_version,
            head,
            off: OffFields::default(),
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
            (Part::Main, _) => self.strategies.main.warnings(new, old),
            (Part::Subresource("status"), Some(old)) => {
                self.strategies.subresources.status_warnings(new, old)
            }
            (Part::Subresource(_), _) => Vec::new(),
        }
    }

    /// 400 for a body that upstream's conversion cannot read.
    pub(crate) fn check_readable(&self, object: &Object) -> Result<()> {
        let Some(error) = self.strategies.decode.unreadable(object) else { return Ok(()) };
        let (found, expected) = (self.info.gvk.clone(), self.info.gvk.kind.clone());
        Err(Box::new(DecodeError::CannotBeHandled { found, expected, error }.status()))
    }

    /// Makes what a client sent whole: every default, in the storage version. Doing it again changes nothing.
    pub(crate) fn complete(&self, object: &mut Object, moment: Moment) {
        self.info.schema.default(object);
        self.to_storage(object);
        self.strategies.decode.default(object, moment);
    }

    /// Brings an object of this version into the storage version.
    pub(crate) fn to_storage(&self, object: &mut Object) {
        if let Some(stored) = &self.stored_as {
            self.strategies.decode.to_storage(object);
            object.set(&["apiVersion"], stored.group_version().to_string());
        }
    }

    /// Brings a stored object into this version.
    pub fn to_version(&self, object: &mut Object) {
        if self.stored_as.is_some() {
            self.strategies.decode.to_version(object);
            object.set(&["apiVersion"], &self.api_version);
            self.info.schema.normalise(object);
        }
    }
}

/// The selectable fields that the store indexes.
pub(crate) fn indexed_fields(info: &KindInfo) -> Vec<Arc<str>> {
    info.selectable.iter().filter(|f| !f.starts_with("metadata.")).map(|f| Arc::from(f.as_str())).collect()
}

/// The values of an object's selectable fields, in the storage version.
pub(crate) fn field_values(
    strategy: &dyn FieldStrategy,
    fields: &[Arc<str>],
    object: &Object,
) -> Box<[(Arc<str>, Box<str>)]> {
    fields.iter().map(|f| (f.clone(), Box::from(&*strategy.field(object, f)))).collect()
}

/// A view as it is served: with the kind that it shows, described as if it were a resource of its own.
pub(crate) struct Viewed {
    /// The subresource.
    pub(crate) name: String,
    /// How it is read off the parent and written back.
    pub(crate) view: Box<dyn View>,
    /// The kind that it shows.
    pub(crate) served: Arc<ServedResource>,
}

impl Viewed {
    /// All views of a kind.
    fn all(parent: &KindInfo, scale: Option<ScaleSelector>) -> Vec<Self> {
        let scale = scale.and_then(|selector| {
            Self::new(parent, parent.subresource("scale")?, Box::new(Scale::of_pods(selector)))
        });
        scale.into_iter().collect()
    }

    /// The scale of a custom resource.
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
            selectable: Vec::new(),
            ..parent.clone()
        };
        let served = ServedResource::of_view(info, view.stands_alone());
        Some(Self { name: subresource.name.clone(), view, served: Arc::new(served) })
    }
}
