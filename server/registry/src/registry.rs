//! Entry point to objects for HTTP, gRPC and internal controllers.
//!
//! [`Registry::serve`] takes a raw call. The typed verbs take decoded objects and follow the same rules. All writes use one of
//! the two.

use std::sync::Arc;

use portico_auth::Authorizer;
use portico_kinds::Kinds;
use portico_kit::metrics;
use portico_kit::offload::Offload;
use portico_machinery::{GroupResource, GroupVersion, GroupVersionKind, Object, Reason};
use portico_store::{Store, with_single_revision_check};

use crate::Result;
use crate::admission::Admission;
use crate::answer::Answer;
use crate::call::Call;
use crate::connection::{BackendAddresses, ConnectOutcome};
use crate::custom::{Definitions, FailingWebhook, WebhookConverter};
use crate::follow::{CombinedFeed, ResourceFeed};
use crate::objects::Objects;
use crate::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use crate::preconditions::written_unchanged;
use crate::scale_error::ScaleError;
use crate::serve::CallHandler;
use crate::settings::{Clock, Settings};
use crate::stored_object::StoredObject;
use crate::table::ResourceTable;
use crate::verb_types::{Context, DeleteResult, ListResult, ObjectPart, ObjectPath, Patch, WriteResult};
use crate::verbs::Verbs;
use crate::views::ViewTarget;
use crate::webhooks::Webhooks;

/// Handle of the registry; cheap to clone.
#[derive(Clone)]
pub struct Registry {
    verbs: Arc<Verbs>,
    calls: Arc<CallHandler>,
}

impl Registry {
    /// Creates a registry of these kinds over a store that was opened with a [`crate::KindIndexer`] of the same kinds. The
    /// authorizer decides on a create that results from an update.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        kinds: &Kinds,
        table: &ResourceTable,
        admission: Arc<dyn Admission>,
        authorizer: Arc<dyn Authorizer>,
        settings: Settings,
        clock: Clock,
    ) -> Self {
        let objects = Objects::new(store, kinds, &table.strategies, authorizer, settings, clock);
        let verbs = Verbs { objects: Arc::new(objects), admission, hooks: table.hooks.clone() };
        let verbs = Arc::new(verbs);
        let calls = Arc::new(CallHandler::new(Arc::clone(&verbs), table.handlers.clone(), kinds));
        Self { verbs, calls }
    }

    /// Verbs that write.
    #[must_use]
    pub fn verbs(&self) -> &Verbs {
        &self.verbs
    }

    /// Read access to stored objects.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.verbs.objects
    }

    /// Sets the client for webhooks, once; later calls have no effect. Until then, conversions by webhook get status 503.
    pub fn set_webhooks(&self, webhooks: Webhooks, metrics: &metrics::Registry) {
        // Already set.
        let _ = self.objects().conversions.set(WebhookConverter::new(webhooks, metrics));
    }

    /// Sets the threads for long work, once; later calls have no effect.
    pub fn offload_to(&self, offload: Arc<Offload>) {
        // Already set.
        let _ = self.objects().offload.set(offload);
    }

    /// Failures of the conversion webhooks of a group version, by definition.
    #[must_use]
    pub fn failing_conversion_webhooks(&self, group_version: &GroupVersion) -> Vec<FailingWebhook> {
        self.definitions().failing_webhooks(group_version)
    }

    /// Underlying store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.objects().store
    }

    /// Index of the definitions.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.objects().definitions
    }

    /// Storage resources of kinds whose objects expire.
    pub(crate) fn expiring(&self) -> Vec<portico_store::Resource> {
        self.objects().builtin.expiring()
    }

    /// Answers a call: checks the route within a group version, decodes options and body, runs the verb, and encodes the result.
    /// Failures are answers as well.
    pub async fn serve(&self, call: Call) -> Answer {
        self.calls.serve(call).await
    }

    /// Answers a call of a subresource that connects (`exec`, `log`, `proxy`, ...) with an answer or a target to dial. Other
    /// calls are answered as by [`Registry::serve`].
    pub async fn connect(&self, call: Call, backends: &dyn BackendAddresses) -> ConnectOutcome {
        self.calls.connect(call, backends).await
    }

    /// Creates an object in the namespace that it contains.
    ///
    /// # Errors
    /// Status 400, 404 for a missing namespace, 409 or 422, as upstream.
    pub async fn create(
        &self,
        context: &Context,
        resource: &GroupResource,
        object: Object,
        options: &CreateOptions,
    ) -> Result<WriteResult> {
        let served_resource = self.objects().served_resource(resource)?;
        let namespace = object.namespace().to_owned();
        with_single_revision_check(self.verbs.create(context, &served_resource, &namespace, object, options))
            .await
    }

    /// Reads an object, including all writes acknowledged before the call.
    ///
    /// # Errors
    /// Status 404 if it is absent.
    pub async fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Result<StoredObject> {
        let served_resource = self.objects().served_resource(resource)?;
        Ok(self.objects().recent.get_or_insert(self.objects().get(&served_resource, namespace, name).await?))
    }

    /// Lists objects; an empty namespace selects all namespaces.
    ///
    /// # Errors
    /// Status 400, 410 or 504.
    pub async fn list(
        &self,
        resource: &GroupResource,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<ListResult> {
        let served_resource = self.objects().served_resource(resource)?;
        let page = self.objects().list(&served_resource, namespace, options).await?;
        Ok(page.into())
    }

    /// Reads the `scale` subresource of an object of any served kind; `None` if the object does not exist.
    ///
    /// # Errors
    /// [`ScaleError`].
    pub async fn scale(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> std::result::Result<Option<StoredObject>, ScaleError> {
        let served_resource = self.objects().by_kind(kind).ok_or_else(|| ScaleError::unknown(kind))?;
        let part = ObjectPart::Subresource("scale");
        let served_view = served_resource
            .view(part)
            .ok_or_else(|| ScaleError::Unscalable(served_resource.resource.clone()))?;
        let target =
            ViewTarget { parent: &served_resource, served_view, path: ObjectPath { part, namespace, name } };
        match self.objects().get_view(target).await {
            Err(status) if status.reason() == Reason::NotFound => Ok(None),
            scale => Ok(Some(scale?)),
        }
    }

    /// Replaces an object or one of its subresources. The object contains its name and namespace.
    ///
    /// # Errors
    /// Status 404, 409 or 422.
    pub async fn update(
        &self,
        context: &Context,
        resource: &GroupResource,
        part: ObjectPart<'_>,
        object: Object,
        options: &UpdateOptions,
    ) -> Result<WriteResult> {
        let served_resource = self.objects().served_resource(resource)?;
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let path = ObjectPath { part, namespace: &namespace, name: &name };
        with_single_revision_check(self.verbs.update(context, &served_resource, path, object, options)).await
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// Status 404, 409 or 422.
    pub async fn update_status(
        &self,
        context: &Context,
        resource: &GroupResource,
        object: Object,
    ) -> Result<WriteResult> {
        self.update(context, resource, ObjectPart::Subresource("status"), object, &UpdateOptions::default())
            .await
    }

    /// Replaces the status of an object if other objects are unchanged. The transaction writes these objects unchanged, so that
    /// of two such writes in different processes, each of which depends on the other's object, one fails. Objects that do not fit
    /// into the transaction are only compared.
    ///
    /// # Errors
    /// Status 404, 409 or 422.
    pub async fn update_status_if_unchanged(
        &self,
        context: &Context,
        resource: &GroupResource,
        object: Object,
        others: &[StoredObject],
    ) -> Result<WriteResult> {
        let served_resource = self.objects().served_resource(resource)?;
        let name = object.name().to_owned();
        let path = ObjectPath { part: ObjectPart::Subresource("status"), namespace: "", name: &name };
        let (others, options) = (written_unchanged(others), UpdateOptions::default());
        with_single_revision_check(self.verbs.update_with(
            context,
            &served_resource,
            path,
            (object, &others),
            &options,
        ))
        .await
    }

    /// Patches an object or one of its subresources; retries after conflicts with concurrent writes.
    ///
    /// # Errors
    /// Status 400, 404, 409 or 422.
    pub async fn patch(
        &self,
        context: &Context,
        resource: &GroupResource,
        path: ObjectPath<'_>,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<WriteResult> {
        let served_resource = self.objects().served_resource(resource)?;
        with_single_revision_check(self.verbs.patch(context, &served_resource, path, patch, options)).await
    }

    /// Applies a configuration (YAML or JSON) to an object or one of its subresources, or creates the object. Retries after
    /// conflicts with concurrent writes, but not after conflicts of ownership.
    ///
    /// # Errors
    /// Status 400, 403, 404, 409 or 422.
    pub async fn apply(
        &self,
        context: &Context,
        resource: &GroupResource,
        path: ObjectPath<'_>,
        config: &[u8],
        options: &PatchOptions,
    ) -> Result<WriteResult> {
        let served_resource = self.objects().served_resource(resource)?;
        with_single_revision_check(self.verbs.apply(context, &served_resource, path, config, options)).await
    }

    /// Deletes an object, or sets its deletion timestamp if finalizers keep it.
    ///
    /// # Errors
    /// Status 404 or 409.
    pub async fn delete(
        &self,
        context: &Context,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<DeleteResult> {
        let served_resource = self.objects().served_resource(resource)?;
        with_single_revision_check(self.verbs.delete(context, &served_resource, namespace, name, options))
            .await
    }

    /// Deletes listed objects of one namespace as a collection.
    ///
    /// # Errors
    /// The first failure other than 404.
    pub async fn delete_collection(
        &self,
        context: &Context,
        resource: &GroupResource,
        namespace: &str,
        objects: &[StoredObject],
        options: &DeleteOptions,
    ) -> Result<()> {
        let served_resource = self.objects().served_resource(resource)?;
        served_resource.require_verb("deletecollection")?;
        let records: Vec<_> = objects.iter().map(|object| Arc::clone(object.record())).collect();
        let deleting = self.verbs.delete_collection(context, &served_resource, namespace, &records, options);
        with_single_revision_check(deleting).await.map(drop)
    }

    /// Snapshot of a resource and all later changes.
    ///
    /// # Errors
    /// Status 404 if the resource is not served, 503 if the store cannot be read.
    pub async fn follow(&self, resource: &GroupResource) -> Result<ResourceFeed> {
        let served_resource = self.objects().served_resource(resource)?;
        self.objects().clone().follow(&served_resource).await
    }

    /// Snapshots of several resources and all later changes in one order. `T` is the caller's label for a resource.
    ///
    /// # Errors
    /// Errors of [`Self::follow`] for one of the resources.
    pub async fn follow_all<T: Copy + Send + 'static>(
        &self,
        resources: impl IntoIterator<Item = (T, GroupResource)>,
    ) -> Result<CombinedFeed<T>> {
        let served_resource = |(which, resource)| Ok((which, self.objects().served_resource(&resource)?));
        let served_resources = resources.into_iter().map(served_resource).collect::<Result<_>>()?;
        self.objects().clone().follow_together(served_resources).await
    }
}
