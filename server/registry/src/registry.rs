//! The registry itself: the one door to objects, for both front doors and for our own controllers.
//!
//! [`Registry::serve`] takes a raw call. The typed verbs take decoded objects and follow the same rules: nothing is
//! written in another way.

mod nouns;

use std::sync::{Arc, OnceLock};

pub use nouns::{Context, Deleted, Listed, Part, Patch, Place, Written};

use portico_auth::Authorizer;
use portico_kinds::Kinds;
use portico_kit::metrics;
use portico_kit::offload::Offload;
use portico_machinery::{
    GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, Object, Status,
};
use portico_schema::Schema;
use portico_store::Store;

use crate::Result;
use crate::admission::Admission;
use crate::answer::Answer;
use crate::call::Call;
use crate::connection::{Connected, Registered};
use crate::custom::{Conversions, Converted, Definition, Definitions, Shapes, Trouble};
use crate::follow::Followed;
use crate::forms::FormCache;
use crate::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use crate::recent::Recent;
use crate::scheme::Scheme;
use crate::serve;
use crate::served::{ResourceIndex, ServedResource};
use crate::settings::{Clock, Settings};
use crate::stored::Stored;
use crate::strategy::Moment;
use crate::table::ResourceTable;
use crate::webhooks::Webhooks;

/// The registry. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Verbs>,
}

/// What all verbs share.
pub struct Verbs {
    /// Where objects are.
    pub store: Arc<dyn Store>,
    /// The built-in kinds.
    pub catalogue: Arc<ResourceIndex>,
    pub(crate) definitions: Definitions,
    /// Answers what only the registry can ask.
    pub authorizer: Arc<dyn Authorizer>,
    /// Sizes, times and switches.
    pub settings: Settings,
    /// Where the time comes from.
    pub clock: Clock,
    pub(crate) forms: FormCache,
    /// Objects that were decoded a moment ago.
    pub recent: Recent,
    pub(crate) converted: Converted,
    /// Who else is asked about writes.
    pub(crate) admission: Arc<dyn Admission>,
    /// Given once there is a way to webhooks.
    pub(crate) conversions: OnceLock<Conversions>,
    /// Given once there are threads for long work; without, everything is done where it is asked for.
    pub(crate) offload: OnceLock<Offload>,
    /// Kinds that a body may be of by mistake.
    pub(crate) scheme: Scheme,
    /// The types of delete options, for bodies in YAML.
    pub(crate) delete_options: Option<Schema>,
}

impl Verbs {
    /// The time of a request.
    pub fn moment(&self) -> Moment {
        Moment { now: (self.clock)() }
    }

    /// The resource in the version that our own code speaks.
    pub fn served(&self, resource: &GroupResource) -> Result<Arc<ServedResource>> {
        if let Some(served) = self.catalogue.preferred(resource) {
            return Ok(Arc::clone(served));
        }
        let definition = self.definition(resource).filter(|definition| definition.facts.is_reachable());
        let served = definition.and_then(|definition| definition.serving.storage().cloned());
        served.ok_or_else(|| Box::new(Status::no_route()))
    }

    /// The resource in a version that requests may use.
    pub(crate) fn by_resource(&self, resource: &GroupVersionResource) -> Option<Arc<ServedResource>> {
        if let Some(served) = self.catalogue.by_resource(resource) {
            return Some(Arc::clone(served));
        }
        let definition = self.definition(&resource.group_resource())?;
        let reachable =
            definition.facts.is_reachable() && definition.facts.names().plural == resource.resource;
        definition.serving.version(&resource.version).filter(|_| reachable).cloned()
    }

    /// The definition of a resource, reachable or not.
    pub(crate) fn definition(&self, resource: &GroupResource) -> Option<Definition> {
        self.definitions.of_resource(&*self.store, resource)
    }
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
        let inner = Verbs {
            store,
            catalogue: Arc::new(ResourceIndex::new(kinds, table)),
            definitions: Definitions::new(Shapes::of(kinds)),
            authorizer,
            forms: FormCache::new(settings.form_cache_bytes),
            recent: Recent::new(),
            converted: Converted::new(),
            admission,
            conversions: OnceLock::new(),
            offload: OnceLock::new(),
            scheme: Scheme::new(kinds),
            delete_options: kinds.meta("DeleteOptions"),
            settings,
            clock,
        };
        Self { inner: Arc::new(inner) }
    }

    /// What all verbs share, for rooms of this crate.
    pub fn verbs(&self) -> &Verbs {
        &self.inner
    }

    /// Gives the registry a way to webhooks; the first one counts. Conversions by webhook answer 503 before.
    pub fn ask_webhooks(&self, webhooks: Webhooks, metrics: &metrics::Registry) {
        // There is one already.
        let _ = self.inner.conversions.set(Conversions::new(webhooks, metrics));
    }

    /// Gives the registry threads for calls that take long; the first ones count.
    pub fn offload_to(&self, offload: Offload) {
        // There are some already.
        let _ = self.inner.offload.set(offload);
    }

    /// What is wrong with the conversion webhooks behind a group version, by definition.
    #[must_use]
    pub fn conversion_troubles(&self, group_version: &GroupVersion) -> Vec<Trouble> {
        self.inner.definitions.troubles(group_version)
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// The kind as it is served.
    pub(crate) fn by_kind(&self, kind: &GroupVersionKind) -> Option<Arc<ServedResource>> {
        let inner = &self.inner;
        if let Some(served) = inner.catalogue.by_kind(kind) {
            return Some(Arc::clone(served));
        }
        let definition = inner.definitions.of_kind(&*inner.store, &kind.group_kind())?;
        definition.serving.version(&kind.version).filter(|_| definition.facts.is_reachable()).cloned()
    }

    /// What is known of definitions.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.inner.definitions
    }

    /// What kinds whose objects expire are stored as.
    pub(crate) fn expiring(&self) -> Vec<portico_store::Resource> {
        self.inner.catalogue.expiring()
    }

    /// Answers a call: route checks inside a group version, options, decoding, the verb, the form. A failure is an answer.
    pub async fn serve(&self, call: Call) -> Answer {
        serve::serve(&self.inner, call).await
    }

    /// Decides on subresources that connect (`exec`, `log`, `proxy`, ...): an answer, or where to dial. Anything else
    /// is answered as [`Registry::serve`] would.
    pub async fn connect(&self, call: Call, registered: &dyn Registered) -> Connected {
        serve::connect(&self.inner, call, registered).await
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
        let served = self.inner.served(resource)?;
        let namespace = object.namespace().to_owned();
        self.inner.create(context, &served, &namespace, object, options).await
    }

    /// Reads an object, as fresh as the last acknowledged write.
    ///
    /// # Errors
    /// 404.
    pub async fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Result<Stored> {
        let served = self.inner.served(resource)?;
        Ok(self.inner.recent.stored(self.inner.get(&served, namespace, name).await?))
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
        let served = self.inner.served(resource)?;
        let page = self.inner.list(&served, namespace, options).await?;
        Ok(page.into())
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
        let served = self.inner.served(resource)?;
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let place = Place { part, namespace: &namespace, name: &name };
        self.inner.update(context, &served, place, object, options).await
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
        let served = self.inner.served(resource)?;
        self.inner.patch(context, &served, place, patch, options).await
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
        let served = self.inner.served(resource)?;
        self.inner.apply(context, &served, place, config, options).await
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
        let served = self.inner.served(resource)?;
        self.inner.delete(context, &served, namespace, name, options).await
    }

    /// Deletes what the options select; returns what was there, as it was.
    ///
    /// # Errors
    /// The first failure but 404.
    pub async fn delete_collection(
        &self,
        context: &Context,
        resource: &GroupResource,
        namespace: &str,
        select: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Listed> {
        let served = self.inner.served(resource)?;
        let (page, _) = self.inner.delete_collection(context, &served, namespace, select, options).await?;
        Ok(page.into())
    }

    /// A snapshot of a resource and everything that happens to it afterwards.
    ///
    /// # Errors
    /// 404 when no such resource is served, 503 when the store cannot be read.
    pub async fn follow(&self, resource: &GroupResource) -> Result<Followed> {
        let served = self.inner.served(resource)?;
        self.inner.clone().follow(&served).await
    }
}
