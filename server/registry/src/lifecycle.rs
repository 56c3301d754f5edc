//! Checks of lifecycles: no object is created in a missing or terminating namespace, or of a terminating definition. Admission
//! settings may disable the check of the namespace, or create missing namespaces.

use std::sync::Arc;

use portico_machinery::status::{Cause, Reason};
use portico_machinery::{GroupResource, Object, Status};
use portico_schema::structural::CustomResource;
use portico_store::Record;

use crate::Result;
use crate::hooks::ResultFuture;
use crate::objects::Objects;
use crate::options::CreateOptions;
use crate::served_resource::ServedResource;
use crate::stored_object;
use crate::verb_types::{Context, ObjectPath};
use crate::verbs::Verbs;

/// User that creates missing namespaces.
const SERVER: &str = "system:apiserver";

impl Objects {
    /// Status 403 for a custom resource whose definition is terminating.
    pub(crate) fn check_definition(&self, served_resource: &ServedResource, object: &Object) -> Result<()> {
        let definition =
            served_resource.custom.as_ref().and_then(|_| self.definition(&served_resource.resource));
        if !definition.is_some_and(|definition| definition.facts.is_terminating()) {
            return Ok(());
        }
        let reason = "create not allowed while custom resource definition is terminating";
        Err(Box::new(Status::forbidden(&served_resource.resource, object.name(), reason)))
    }

    /// Status 500 for a custom resource whose schema cannot be compiled, as its objects cannot be validated.
    pub(crate) fn check_schema(&self, served_resource: &ServedResource) -> Result<()> {
        let Some(Err(error)) = served_resource.info.schema.custom().map(CustomResource::check) else {
            return Ok(());
        };
        let version = &served_resource.info.gvk.version;
        let reason =
            format!("error resolving resource: the schema of version {version} cannot be used: {error}");
        Err(Box::new(Status::internal(reason)))
    }

    /// Record of the object's namespace; status 404 if the namespace does not exist, 403 if it is terminating.
    pub(crate) async fn admit_into_namespace(
        &self,
        served_resource: &ServedResource,
        object: &Object,
    ) -> Result<Option<Arc<Record>>> {
        if !served_resource.info.namespaced {
            return Ok(None);
        }
        let name = [object.name(), object.generate_name()].into_iter().find(|name| !name.is_empty());
        self.namespace_for_create(served_resource, object.namespace(), name.unwrap_or_default()).await
    }

    /// Record of the namespace in which an object of this name is created.
    ///
    /// # Errors
    /// Status 404 if it does not exist, 403 if it is terminating.
    async fn namespace_for_create(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Record>>> {
        let Ok(kind) = self.served_resource(&namespaces()) else { return Ok(None) };
        let Some(record) = self.read(&kind, "", namespace).await? else {
            return Err(Box::new(Status::not_found(&namespaces(), namespace)));
        };
        if record.value.field("status.phase") != Some("Terminating") {
            return Ok(Some(record));
        }
        if stored_object::decode(&record).deletion_timestamp().is_none() {
            return Ok(Some(record));
        }
        let reason =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let name = if name.is_empty() { "Unknown" } else { name };
        Err(Box::new(Status::forbidden(&served_resource.resource, name, &reason).with_cause(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        })))
    }
}

impl Verbs {
    /// Applies the namespace rules of admission to a new object: creates a missing namespace, or refuses the object.
    pub(crate) async fn admit_into_namespace(
        &self,
        served_resource: &ServedResource,
        object: &Object,
        dry_run: bool,
    ) -> Result<()> {
        let rules = self.admission.namespace_rules();
        if rules.provision && served_resource.info.namespaced && !dry_run {
            self.create_missing_namespace(object.namespace()).await?;
        }
        if rules.lifecycle {
            self.objects.admit_into_namespace(served_resource, object).await?;
        }
        Ok(())
    }

    /// Applies the same rules to an action, which counts as a create; the path contains namespace and name.
    pub(crate) async fn admit_action_into_namespace(
        &self,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        dry_run: bool,
    ) -> Result<()> {
        let rules = self.admission.namespace_rules();
        if rules.provision && !dry_run {
            self.create_missing_namespace(path.namespace).await?;
        }
        if rules.lifecycle {
            self.objects.namespace_for_create(served_resource, path.namespace, path.name).await?;
        }
        Ok(())
    }

    /// Creates a missing namespace as the user of the server, like upstream's plugin.
    fn create_missing_namespace<'a>(&'a self, name: &'a str) -> ResultFuture<'a, ()> {
        Box::pin(async move {
            let Ok(kind) = self.objects.served_resource(&namespaces()) else { return Ok(()) };
            if self.objects.read(&kind, "", name).await?.is_some() {
                return Ok(());
            }
            let mut namespace = Object::new(&kind.info.gvk);
            namespace.set(&["metadata", "name"], name);
            let (server, options) = (Context::system(SERVER), CreateOptions::default());
            match self.create(&server, &kind, "", namespace, &options).await {
                Err(status) if status.reason() != Reason::AlreadyExists => Err(status),
                Ok(_) | Err(_) => Ok(()),
            }
        })
    }
}

fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}
