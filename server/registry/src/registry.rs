//! The registry itself: the entry point to objects, for HTTP, gRPC and our own controllers.
//!
//! [`Registry::serve`] takes a raw call. The typed verbs take decoded objects and follow the same rules: nothing is
//! written in another way.

use std::sync::Arc;

use portico_auth::Authorizer;
use portico_kinds::Kinds;
use portico_kit::metrics;
use portico_kit::offload::Offload;
use portico_machinery::{GroupResource, GroupVersion, GroupVersionKind, Object, Reason};
use portico_store::{Store, ask_once};

use crate::Result;
use crate::admission::Admission;
use crate::answer::Answer;
use crate::call::Call;
use crate::connection::{Connected, Registered};
use crate::custom::{Conversions, Definitions, FailingWebhook};
use crate::follow::{Followed, FollowedTogether};
use crate::objects::Objects;
use crate::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use crate::preconditions::written_unchanged;
use crate::scale_error::ScaleError;
use crate::serve::CallHandler;
use crate::settings::{Clock, Settings};
use crate::stored::Stored;
use crate::table::ResourceTable;
use crate::typed::{Context, Deleted, Listed, Part, Patch, Place, Written};
use crate::verbs::Verbs;
use crate::views::ViewTarget;
use crate::webhooks::Webhooks;

/// The registry. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    verbs: Arc<Verbs>,
    calls: Arc<CallHandler>,
}

impl Registry {
    /// A registry of these kinds over a store, which must have been opened with a [`crate::KindIndexer`] of the same
    /// kinds. The authorizer answers what only the registry can ask: create on update.
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

    /// The verbs that write.
    #[must_use]
    pub fn verbs(&self) -> &Verbs {
        &self.verbs
    }

    /// What is stored.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.verbs.objects
    }

    /// Gives the registry a way to webhooks; the first one counts. Conversions by webhook answer 503 before.
    pub fn set_webhooks(&self, webhooks: Webhooks, metrics: &metrics::Registry) {
        // There is one already.
        let _ = self.objects().conversions.set(Conversions::new(webhooks, metrics));
    }

    /// Gives the registry threads for calls that take long; the first ones count.
    pub fn offload_to(&self, offload: Arc<Offload>) {
        // There are some already.
        let _ = self.objects().offload.set(offload);
    }

    /// What is wrong with the conversion webhooks behind a group version, by definition.
    #[must_use]
    pub fn failing_conversion_webhooks(&self, group_version: &GroupVersion) -> Vec<FailingWebhook> {
        self.definitions().failing_webhooks(group_version)
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.objects().store
    }

    /// What is known of definitions.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.objects().definitions
    }

    /// What kinds whose objects expire are stored as.
    pub(crate) fn expiring(&self) -> Vec<portico_store::Resource> {
        self.objects().builtin.expiring()
    }

    /// Answers a call: route checks inside a group version, options, decoding, the verb, the form. A failure is an answer.
    pub async fn serve(&self, call: Call) -> Answer {
        self.calls.serve(call).await
    }

    /// Decides on subresources that connect (`exec`, `log`, `proxy`, ...): an answer, or where to dial. Anything else
    /// is answered as [`Registry::serve`] would.
    pub async fn connect(&self, call: Call, registered: &dyn Registered) -> Connected {
        self.calls.connect(call, registered).await
    }

    /// Creates an object; its namespace is its own.
    ///
    /// # Errors
    /// 400, 404 of the namespace, 409, 422 as upstream.
    pub async fn create(
        &self,
        context: &Context,
        resource: &GroupResource,
        object: Object,
        options: &CreateOptions,
    ) -> Result<Written> {
        let served = self.objects().served(resource)?;
        let namespace = object.namespace().to_owned();
        ask_once(self.verbs.create(context, &served, &namespace, object, options)).await
    }

    /// Reads an object, as fresh as the last acknowledged write.
    ///
    /// # Errors
    /// 404.
    pub async fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Result<Stored> {
        let served = self.objects().served(resource)?;
        Ok(self.objects().recent.stored(self.objects().get(&served, namespace, name).await?))
    }

    /// Lists objects; an empty namespace is all of them.
    ///
    /// # Errors
    /// 400, 410, 504.
    pub async fn list(
        &self,
        resource: &GroupResource,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Listed> {
        let served = self.objects().served(resource)?;
        let page = self.objects().list(&served, namespace, options).await?;
        Ok(page.into())
    }

    /// The `scale` subresource of an object of any kind that is served here; nothing when there is no such object.
    ///
    /// # Errors
    /// [`ScaleError`].
    pub async fn scale(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> std::result::Result<Option<Stored>, ScaleError> {
        let served = self.objects().by_kind(kind).ok_or_else(|| ScaleError::unknown(kind))?;
        let part = Part::Subresource("scale");
        let viewed = served.view(part).ok_or_else(|| ScaleError::Unscalable(served.resource.clone()))?;
        let target = ViewTarget { parent: &served, viewed, place: Place { part, namespace, name } };
        match self.objects().get_view(target).await {
            Err(status) if status.reason() == Reason::NotFound => Ok(None),
            scale => Ok(Some(scale?)),
        }
    }

    /// Replaces an object or one of its subresources. Name and namespace are the object's.
    ///
    /// # Errors
    /// 404, 409, 422.
    pub async fn update(
        &self,
        context: &Context,
        resource: &GroupResource,
        part: Part<'_>,
        object: Object,
        options: &UpdateOptions,
    ) -> Result<Written> {
        let served = self.objects().served(resource)?;
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let place = Place { part, namespace: &namespace, name: &name };
        ask_once(self.verbs.update(context, &served, place, object, options)).await
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// 404, 409, 422.
    pub async fn update_status(
        &self,
        context: &Context,
        resource: &GroupResource,
        object: Object,
    ) -> Result<Written> {
        self.update(context, resource, Part::Subresource("status"), object, &UpdateOptions::default()).await
    }

    /// Replaces the status of an object if others are as they were read. They are written unchanged in the same transaction, so that of two
    /// such writes in different processes, each of which relies on the other's object, one fails. Those that have no room in the
    /// transaction are only compared.
    ///
    /// # Errors
    /// 404, 409, 422.
    pub async fn update_status_among(
        &self,
        context: &Context,
        resource: &GroupResource,
        object: Object,
        others: &[Stored],
    ) -> Result<Written> {
        let served = self.objects().served(resource)?;
        let name = object.name().to_owned();
        let place = Place { part: Part::Subresource("status"), namespace: "", name: &name };
        let (others, options) = (written_unchanged(others), UpdateOptions::default());
        ask_once(self.verbs.update_with(context, &served, place, (object, &others), &options)).await
    }

    /// Patches an object or one of its subresources; conflicts with others are retried inside.
    ///
    /// # Errors
    /// 400, 404, 409, 422.
    pub async fn patch(
        &self,
        context: &Context,
        resource: &GroupResource,
        place: Place<'_>,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<Written> {
        let served = self.objects().served(resource)?;
        ask_once(self.verbs.patch(context, &served, place, patch, options)).await
    }

    /// Applies a configuration (YAML or JSON) to an object or one of its subresources, or creates it; conflicts of
    /// writes with others are retried inside, those of ownership are not.
    ///
    /// # Errors
    /// 400, 403, 404, 409, 422.
    pub async fn apply(
        &self,
        context: &Context,
        resource: &GroupResource,
        place: Place<'_>,
        config: &[u8],
        options: &PatchOptions,
    ) -> Result<Written> {
        let served = self.objects().served(resource)?;
        ask_once(self.verbs.apply(context, &served, place, config, options)).await
    }

    /// Deletes an object, or marks it when finalizers keep it.
    ///
    /// # Errors
    /// 404, 409.
    pub async fn delete(
        &self,
        context: &Context,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        let served = self.objects().served(resource)?;
        ask_once(self.verbs.delete(context, &served, namespace, name, options)).await
    }

    /// Deletes listed objects of one namespace as a collection.
    ///
    /// # Errors
    /// The first failure but 404.
    pub async fn delete_collection(
        &self,
        context: &Context,
        resource: &GroupResource,
        namespace: &str,
        objects: &[Stored],
        options: &DeleteOptions,
    ) -> Result<()> {
        let served = self.objects().served(resource)?;
        served.require("deletecollection")?;
        let records: Vec<_> = objects.iter().map(|object| Arc::clone(object.record())).collect();
        let deleting = self.verbs.delete_collection(context, &served, namespace, &records, options);
        ask_once(deleting).await.map(drop)
    }

    /// A snapshot of a resource and everything that happens to it afterwards.
    ///
    /// # Errors
    /// 404 when no such resource is served, 503 when the store cannot be read.
    pub async fn follow(&self, resource: &GroupResource) -> Result<Followed> {
        let served = self.objects().served(resource)?;
        self.objects().clone().follow(&served).await
    }

    /// Snapshots of several resources and everything that happens to them afterwards, in one order. Each resource is named
    /// by a word of the caller's.
    ///
    /// # Errors
    /// What [`Self::follow`] answers, of the resource that it is about.
    pub async fn follow_together<T: Copy + Send + 'static>(
        &self,
        resources: impl IntoIterator<Item = (T, GroupResource)>,
    ) -> Result<FollowedTogether<T>> {
        let served = |(which, resource)| Ok((which, self.objects().served(&resource)?));
        let served = resources.into_iter().map(served).collect::<Result<_>>()?;
        self.objects().clone().follow_together(served).await
    }
}
