//! Read access to stored objects: lookup of served resources, and of objects in the version of the request.
//!
//! This module only reads. Admission, guards, hooks and connections receive [`Objects`], which cannot write.

use std::sync::{Arc, OnceLock};

use portico_auth::Authorizer;
use portico_kinds::Kinds;
use portico_kit::offload::Offload;
use portico_machinery::{GroupKind, GroupResource, GroupVersionKind, GroupVersionResource, Status};
use portico_store::{Resource, Store};

use crate::Result;
use crate::builtin::{ResourceIndex, StrategyTable};
use crate::custom::{ConversionCache, Definition, Definitions, KindDefaults, WebhookConverter};
use crate::failure;
use crate::forms::FormCache;
use crate::recent_states::RecentStates;
use crate::scheme::Scheme;
use crate::served_resource::ServedResource;
use crate::settings::{Clock, Settings};
use crate::strategy::RequestTime;
use crate::webhooks::Webhooks;

/// Shared state of all reads.
pub struct Objects {
    /// Store that contains the objects.
    pub store: Arc<dyn Store>,
    /// Built-in resources.
    pub builtin: Arc<ResourceIndex>,
    /// Kinds that a body may contain by mistake.
    pub(crate) scheme: Scheme,
    pub(crate) definitions: Definitions,
    /// Authorizer for requests that result from other requests.
    pub authorizer: Arc<dyn Authorizer>,
    /// Sizes, durations and switches.
    pub settings: Settings,
    /// Clock of the registry.
    pub clock: Clock,
    pub(crate) forms: FormCache,
    /// Recently decoded objects.
    pub recent: RecentStates,
    pub(crate) converted: ConversionCache,
    /// Threads for long work, once set.
    pub(crate) offload: OnceLock<Arc<Offload>>,
    /// Converter for custom resources, once webhooks can be called.
    pub(crate) conversions: OnceLock<WebhookConverter>,
}

impl Objects {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        kinds: &Kinds,
        strategies: &StrategyTable,
        authorizer: Arc<dyn Authorizer>,
        settings: Settings,
        clock: Clock,
    ) -> Self {
        // Lookups of definitions must not wait.
        store.pin(&Resource::from(crate::definition::resource()));
        Self {
            store,
            builtin: Arc::new(ResourceIndex::new(kinds, strategies)),
            scheme: Scheme::new(kinds),
            definitions: Definitions::new(KindDefaults::from_kinds(kinds)),
            authorizer,
            forms: FormCache::new(settings.form_cache_bytes),
            recent: RecentStates::new(),
            converted: ConversionCache::new(),
            offload: OnceLock::new(),
            conversions: OnceLock::new(),
            settings,
            clock,
        }
    }

    /// Runs a computation: on the threads for long work if it is long and they exist, else on this thread. Does not take a slot
    /// there, because the request may already have one.
    ///
    /// # Errors
    /// Status 500 if the work panicked or the process ends.
    pub async fn compute<T: Send + 'static>(
        &self,
        is_long: bool,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        match self.offload.get().filter(|_| is_long) {
            Some(offload) => offload.run_light("long-work", work).await.ok_or_else(failure::unfinished),
            None => Ok(work.await),
        }
    }

    /// Time of a request that starts now.
    pub fn request_time(&self) -> RequestTime {
        RequestTime { now: (self.clock)() }
    }

    /// The resource in the version that internal callers use.
    ///
    /// # Errors
    /// Status 404 if the resource is not served.
    pub fn served_resource(&self, resource: &GroupResource) -> Result<Arc<ServedResource>> {
        if let Some(served_resource) = self.builtin.preferred(resource) {
            return Ok(Arc::clone(served_resource));
        }
        let definition = self.definition(resource).filter(|definition| definition.facts.is_reachable());
        let served_resource = definition.and_then(|definition| definition.versions.storage().cloned());
        served_resource.ok_or_else(|| Box::new(Status::route_not_found()))
    }

    /// The resource in any version that requests may use; `None` if there is none.
    #[must_use]
    pub fn reachable(&self, resource: &GroupResource) -> Option<Arc<ServedResource>> {
        if let Some(served_resource) = self.builtin.preferred(resource) {
            return Some(Arc::clone(served_resource));
        }
        let definition = self.definition(resource).filter(|definition| definition.facts.is_reachable())?;
        definition.versions.served_versions().into_iter().next()
    }

    /// Waits until cached definitions, webhooks and policies include all earlier writes of other processes. Returns immediately
    /// if no other process writes to the store.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        let definitions = self.definitions.resource();
        if self.store.try_snapshot(definitions).is_some() {
            return Ok(());
        }
        self.store.snapshot(definitions).await.map(drop).map_err(|error| failure::from_store_error(error, 0))
    }

    /// The resource in a version that requests may use.
    #[must_use]
    pub fn by_resource(&self, resource: &GroupVersionResource) -> Option<Arc<ServedResource>> {
        if let Some(served_resource) = self.builtin.by_resource(resource) {
            return Some(Arc::clone(served_resource));
        }
        let definition = self.definition(&resource.group_resource())?;
        let reachable =
            definition.facts.is_reachable() && definition.facts.names().plural == resource.resource;
        definition.versions.version(&resource.version).filter(|_| reachable).cloned()
    }

    /// The served resource of a kind.
    #[must_use]
    pub fn by_kind(&self, kind: &GroupVersionKind) -> Option<Arc<ServedResource>> {
        if let Some(served_resource) = self.builtin.by_kind(kind) {
            return Some(Arc::clone(served_resource));
        }
        let of_kind: GroupKind = kind.group_kind();
        let definition = self.definitions.of_kind(&*self.store, &of_kind)?;
        definition.versions.version(&kind.version).filter(|_| definition.facts.is_reachable()).cloned()
    }

    /// Kinds with this plural or singular resource name and version; an empty group selects
    /// all groups (upstream's `RESTMapper.KindsFor`).
    #[must_use]
    pub fn kinds_for(&self, group: &str, version: &str, resource: &str) -> Vec<GroupVersionKind> {
        let resource = resource.to_lowercase();
        let mut kinds = self.builtin.kinds_for(group, version, &resource);
        kinds.extend(self.definitions.kinds_for(&*self.store, group, version, &resource));
        kinds
    }

    /// All served versions of a resource, including this one and those in other groups that contain the same objects.
    pub(crate) fn versions_of(&self, served_resource: &ServedResource) -> Vec<Arc<ServedResource>> {
        if served_resource.custom.is_none() {
            return self.builtin.of_storage(&served_resource.info.storage).to_vec();
        }
        let definition = self.definition(&served_resource.resource);
        definition.map(|definition| definition.versions.served_versions()).unwrap_or_default()
    }

    /// Client for webhooks; `None` until it is set.
    #[must_use]
    pub fn webhooks(&self) -> Option<&Webhooks> {
        self.conversions.get().map(|conversions| &conversions.webhooks)
    }

    /// Definition of a resource, served or not.
    pub(crate) fn definition(&self, resource: &GroupResource) -> Option<Definition> {
        self.definitions.of_resource(&*self.store, resource)
    }
}
