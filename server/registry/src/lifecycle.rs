//! Lifecycles: nothing is created in a namespace that is missing or on its way out, or of a definition that is.

use std::sync::Arc;

use portico_machinery::status::Cause;
use portico_machinery::{GroupResource, Object, Status};
use portico_schema::structural::CustomResource;
use portico_store::Record;

use crate::Result;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored;

impl Objects {
    /// 403 for a custom resource whose definition is on its way out.
    pub(crate) fn admit_of_definition(&self, served: &ServedResource, object: &Object) -> Result<()> {
        let definition = served.custom.as_ref().and_then(|_| self.definition(&served.resource));
        if !definition.is_some_and(|definition| definition.facts.is_terminating()) {
            return Ok(());
        }
        let why = "create not allowed while custom resource definition is terminating";
        Err(Box::new(Status::forbidden(&served.resource, object.name(), why)))
    }

    /// 500 for a custom resource whose schema cannot be used: nobody can say what its objects may hold.
    pub(crate) fn admit_of_schema(&self, served: &ServedResource) -> Result<()> {
        let Some(Err(error)) = served.info.schema.custom().map(CustomResource::check) else { return Ok(()) };
        let version = &served.info.gvk.version;
        let why =
            format!("error resolving resource: the schema of version {version} cannot be used: {error}");
        Err(Box::new(Status::internal(why)))
    }

    /// 404 for a namespace that does not exist, which no action works in (NamespaceLifecycle).
    pub(crate) async fn require_namespace(&self, namespace: &str) -> Result<()> {
        let namespaces = GroupResource::new("", "namespaces");
        let Ok(kind) = self.served(&namespaces) else { return Ok(()) };
        match self.read(&kind, "", namespace).await? {
            Some(_) => Ok(()),
            None => Err(Box::new(Status::not_found(&namespaces, namespace))),
        }
    }

    /// 404 when the object's namespace does not exist, 403 when it is terminating; else the namespace's record.
    pub(crate) async fn admit_into_namespace(
        &self,
        served: &ServedResource,
        object: &Object,
    ) -> Result<Option<Arc<Record>>> {
        if !served.info.namespaced {
            return Ok(None);
        }
        let namespaces = GroupResource::new("", "namespaces");
        let Ok(kind) = self.served(&namespaces) else { return Ok(None) };
        let namespace = object.namespace();
        let Some(record) = self.read(&kind, "", namespace).await? else {
            return Err(Box::new(Status::not_found(&namespaces, namespace)));
        };
        if record.value.field("status.phase") != Some("Terminating") {
            return Ok(Some(record));
        }
        if stored::decode(&record).deletion_timestamp().is_none() {
            return Ok(Some(record));
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
