//! Reads of views from their parents.

use portico_machinery::Object;
use portico_machinery::Status;
use portico_machinery::status::Reason;
use portico_store::Record;

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::encoding;
use crate::objects::Objects;
use crate::served_resource::{ServedResource, ServedView};
use crate::stored_object::StoredObject;
use crate::verb_types::{Context, ObjectPath};
use crate::view::ViewProblem;

/// Parent in one version, and the addressed view.
#[derive(Clone, Copy)]
pub(crate) struct ViewTarget<'a> {
    pub(crate) parent: &'a ServedResource,
    pub(crate) served_view: &'a ServedView,
    pub(crate) path: ObjectPath<'a>,
}

impl<'a> ViewTarget<'a> {
    /// Attributes of a write of the view; admission sees the view under the resource of its parent.
    pub(crate) fn attributes(self, context: &'a Context, options: Options<'a>) -> Attributes<'a> {
        Attributes::new(context, self.parent, self.path, options)
    }
}

impl Objects {
    pub(crate) async fn get_view(&self, target: ViewTarget<'_>) -> Result<StoredObject> {
        let parent = self.parent(target).await?;
        match target.served_view.view.problem(parent.object()) {
            Some(ViewProblem::TypeMismatch(text)) => Err(Box::new(type_mismatch(text))),
            Some(ViewProblem::Absent(text)) => Err(Box::new(Status::internal(text))),
            None => target.served_view.stored_view_of(&parent),
        }
    }

    /// Reads the parent of a view.
    pub(crate) async fn parent(&self, target: ViewTarget<'_>) -> Result<StoredObject> {
        let record = self.get(target.parent, target.path.namespace, target.path.name).await?;
        Ok(self.recent.get_or_insert(record))
    }
}

/// Status 500 without a reason, as in upstream, for a field of a wrong type.
pub(crate) fn type_mismatch(text: String) -> Status {
    Status::failure(Reason::Unknown, text)
}

impl ServedView {
    /// Field that managers own through the view: dotted paths in the parent and in the view.
    pub(crate) fn field(&self) -> (&str, &str) {
        self.view.field()
    }

    /// Computes the view of a parent.
    pub(crate) fn view_of(&self, parent: &Object) -> Object {
        const METADATA: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let mut object = Object::new(&self.served_resource.info.gvk);
        for field in METADATA {
            object.copy_from(parent, &["metadata", field]);
        }
        self.view.fill(parent, &mut object);
        self.served_resource.info.schema.normalize(&mut object);
        object
    }

    /// Computes the view at the revision of the parent, for encoding.
    pub(crate) fn stored_view_of(&self, parent: &StoredObject) -> Result<StoredObject> {
        let mut object = self.view_of(parent.object());
        let (key, revision) = (parent.record().key.clone(), parent.revision());
        let value = encoding::encode(&self.served_resource, &mut object)?;
        Ok(StoredObject::new(Record { key, revision, value }.into()))
    }
}
