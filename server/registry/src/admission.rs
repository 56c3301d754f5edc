//! The namespace lifecycle: nothing is created in a namespace that is missing or on its way out.
//!
//! The one admission rule that the registry cannot do without; the others are plugins of a later room.

use portico_machinery::status::Cause;
use portico_machinery::{GroupResource, Object, Status};

use crate::Result;
use crate::registry::Inner;
use crate::served::Served;
use crate::stored;

impl Inner {
    /// 404 when the object's namespace does not exist, 403 when it is terminating.
    pub(crate) async fn admit_into_namespace(&self, served: &Served, object: &Object) -> Result<()> {
        if !served.info.namespaced {
            return Ok(());
        }
        let namespaces = GroupResource::new("", "namespaces");
        let Ok(kind) = self.served(&namespaces) else { return Ok(()) };
        let namespace = object.namespace();
        let Some(record) = self.read(&kind, "", namespace).await? else {
            return Err(Box::new(Status::not_found(&namespaces, namespace)));
        };
        if record.value.field("status.phase") != Some("Terminating") {
            return Ok(());
        }
        if stored::decode(&record).deletion_timestamp().is_none() {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let name = [object.name(), object.generate_name(), "Unknown"].into_iter().find(|n| !n.is_empty());
        Err(Box::new(Status::forbidden(&served.resource, name.unwrap_or_default(), &why).with_cause(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        })))
    }
}
