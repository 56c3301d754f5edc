//! Views: subresources that show a part of an object as an object of a kind of their own (`scale`).
//!
//! A view is read off its parent and written back into it. What is stored is the parent, by its own update, which has the
//! last word. The table below is all that generic code knows of them.

mod scale;
mod write;

pub(crate) use write::Of;

use scale::Scale;

use std::sync::Arc;

use portico_kinds::{ColumnRule, KindInfo, NameRule, Subresource};
use portico_machinery::Object;
use portico_store::Record;

use crate::Result;
use crate::custom::ScalePaths;
use crate::draft;
use crate::served::Served;
use crate::stored::Stored;
use crate::strategies::Errors;

/// How a part of an object becomes an object of its own, and how it goes back.
pub(crate) trait View: Send + Sync {
    /// Fills in what the view shows of its parent besides the metadata.
    fn show(&self, parent: &Object, view: &mut Object);

    /// Judges a view that was sent, metadata aside.
    fn validate(&self, view: &Object, errors: &mut Errors);

    /// Writes what a view says into its parent.
    fn write(&self, view: &Object, parent: &mut Object);

    /// The field that managers own through the view: dotted paths in the parent and in the view.
    fn field(&self) -> (&str, &str);

    /// The columns of its Table form.
    fn columns(&self) -> Vec<ColumnRule>;
}

/// The view behind a subresource of a built-in kind.
fn of(group: &str, resource: &str, subresource: &str) -> Option<Box<dyn View>> {
    match (group, resource, subresource) {
        ("apps", "deployments" | "replicasets" | "statefulsets", "scale") => Some(Box::new(scale::WORKLOAD)),
        ("", "replicationcontrollers", "scale") => Some(Box::new(scale::REPLICATION_CONTROLLER)),
        _ => None,
    }
}

/// A view as it is served: with the kind that it shows, described as if it were a resource of its own.
pub(crate) struct Viewed {
    /// The subresource.
    pub(crate) name: String,
    view: Box<dyn View>,
    /// The kind that it shows.
    pub(crate) served: Arc<Served>,
}

impl Viewed {
    /// All views of a kind.
    pub(crate) fn all(parent: &KindInfo) -> Vec<Self> {
        let (group, resource) = (&parent.gvk.group, &parent.resource);
        let viewed = |sub: &Subresource| Self::new(parent, sub, of(group, resource, &sub.name)?);
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
            columns: view.columns(),
            schema,
            name_rule: NameRule::Subdomain,
            subresources: Vec::new(),
            selectable: Vec::new(),
            ..parent.clone()
        };
        Some(Self { name: subresource.name.clone(), view, served: Arc::new(Served::of_view(info)) })
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
