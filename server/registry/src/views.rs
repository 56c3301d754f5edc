//! Views: subresources that show a part of an object as an object of a kind of their own (`scale`).
//!
//! A view is read off its parent and written back into it. What is stored is the parent, by its own update, which has the
//! last word. The table below is all that generic code knows of them.

mod scale;
mod write;

pub(crate) use write::Of;

use scale::Scale;
pub use scale::ScaleSelector;

use std::sync::Arc;

use portico_kinds::{ColumnRule, KindInfo, NameRule, Subresource};
use portico_machinery::Object;
use portico_store::Record;

use crate::Result;
use crate::custom::ScalePaths;
use crate::draft;
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::table::{Handler, Row};
use portico_validation::Errors;

/// What keeps a view from being read off its parent, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// A part of it is of another type.
    TypeMismatch(String),
    /// What the view is about is not there. Who writes the view says it.
    Absent(String),
}

/// How a part of an object becomes an object of its own, and how it goes back.
pub(crate) trait View: Send + Sync {
    /// Fills in what the view shows of its parent besides the metadata; what is not there shows as nothing.
    fn show(&self, parent: &Object, view: &mut Object);

    /// What keeps it from being read.
    fn gap(&self, _parent: &Object) -> Option<Gap> {
        None
    }

    /// Marks what [`Gap::Absent`] is about, so that a change of the view that leaves it alone can be told.
    fn leave_open(&self, _view: &mut Object) {}

    /// Why a view in which the mark still stands cannot be written, in upstream's words.
    fn still_open(&self, _view: &Object) -> Option<String> {
        None
    }

    /// Whether the view is a kind among built-in ones, which is judged by itself and can be written as protobuf; others
    /// are judged with the parent that comes of them.
    fn stands_alone(&self) -> bool {
        true
    }

    /// Judges a view that was sent, metadata aside.
    fn validate(&self, view: &Object, errors: &mut Errors);

    /// Writes what a view says into its parent.
    fn write(&self, view: &Object, parent: &mut Object);

    /// The field that managers own through the view: dotted paths in the parent and in the view.
    fn field(&self) -> (&str, &str);

    /// The columns of its Table form.
    fn columns(&self) -> Vec<ColumnRule>;
}

/// A view as it is served: with the kind that it shows, described as if it were a resource of its own.
pub(crate) struct Viewed {
    /// The subresource.
    pub(crate) name: String,
    view: Box<dyn View>,
    /// The kind that it shows.
    pub(crate) served: Arc<ServedResource>,
}

impl Viewed {
    /// All views of a kind.
    pub(crate) fn all(parent: &KindInfo, row: &Row) -> Vec<Self> {
        let view = |name: &str| match row.handler(name) {
            Some(Handler::Scale(selector)) => Some(Box::new(Scale::of_pods(*selector))),
            _ => None,
        };
        let viewed = |sub: &Subresource| Self::new(parent, sub, view(&sub.name)?);
        parent.subresources.iter().filter_map(viewed).collect()
    }

    /// The scale of a custom resource.
    pub(crate) fn scale(parent: &KindInfo, paths: &ScalePaths) -> Option<Self> {
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

    /// The field that managers own through the view: dotted paths in the parent and in the view.
    pub(crate) fn field(&self) -> (&str, &str) {
        self.view.field()
    }

    /// What this view shows of its parent.
    fn show(&self, parent: &Object) -> Object {
        const METADATA: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let mut object = Object::new(&self.served.info.gvk);
        for field in METADATA {
            object.copy_from(parent, &["metadata", field]);
        }
        self.view.show(parent, &mut object);
        self.served.info.schema.normalise(&mut object);
        object
    }

    /// The same at the parent's revision, for whoever makes forms of it.
    fn of_stored(&self, parent: &Stored) -> Result<Stored> {
        let mut object = self.show(parent.object());
        let (key, revision) = (parent.record().key.clone(), parent.revision());
        let value = draft::encode(&self.served, &mut object)?;
        Ok(Stored::new(Record { key, revision, value }.into()))
    }
}
