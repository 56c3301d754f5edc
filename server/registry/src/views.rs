//! Reads of views from their parents.

use portico_machinery::Object;
use portico_machinery::Status;
use portico_machinery::status::Reason;
use portico_store::Record;

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::encoding;
use crate::objects::Objects;
use crate::served::{ServedResource, Viewed};
use crate::stored::Stored;
use crate::typed::{Context, Place};
use crate::view::Gap;

/// Parent in one version, and the addressed view.
#[derive(Clone, Copy)]
pub(crate) struct ViewTarget<'a> {
    pub(crate) parent: &'a ServedResource,
    pub(crate) viewed: &'a Viewed,
    pub(crate) place: Place<'a>,
}

impl<'a> ViewTarget<'a> {
    /// Attributes of a write of the view; admission sees the view under the resource of its parent.
    pub(crate) fn attributes(self, context: &'a Context, options: Options<'a>) -> Attributes<'a> {
        Attributes::new(context, self.parent, self.place, options)
    }
}

impl Objects {
    pub(crate) async fn get_view(&self, target: ViewTarget<'_>) -> Result<Stored> {
        let parent = self.parent(target).await?;
        match target.viewed.view.gap(parent.object()) {
            Some(Gap::TypeMismatch(text)) => Err(Box::new(misfit(text))),
            Some(Gap::Absent(text)) => Err(Box::new(Status::internal(text))),
            None => target.viewed.of_stored(&parent),
        }
    }

    /// Reads the parent of a view.
    pub(crate) async fn parent(&self, target: ViewTarget<'_>) -> Result<Stored> {
        let record = self.get(target.parent, target.place.namespace, target.place.name).await?;
        Ok(self.recent.stored(record))
    }
}

/// Status 500 without a reason, as in upstream, for a field of a wrong type.
pub(crate) fn misfit(text: String) -> Status {
    Status::failure(Reason::Unknown, text)
}

impl Viewed {
    /// Field that managers own through the view: dotted paths in the parent and in the view.
    pub(crate) fn field(&self) -> (&str, &str) {
        self.view.field()
    }

    /// Computes the view of a parent.
    pub(crate) fn show(&self, parent: &Object) -> Object {
        const METADATA: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let mut object = Object::new(&self.served.info.gvk);
        for field in METADATA {
            object.copy_from(parent, &["metadata", field]);
        }
        self.view.show(parent, &mut object);
        self.served.info.schema.normalise(&mut object);
        object
    }

    /// Computes the view at the revision of the parent, for encoding.
    pub(crate) fn of_stored(&self, parent: &Stored) -> Result<Stored> {
        let mut object = self.show(parent.object());
        let (key, revision) = (parent.record().key.clone(), parent.revision());
        let value = encoding::encode(&self.served, &mut object)?;
        Ok(Stored::new(Record { key, revision, value }.into()))
    }
}
