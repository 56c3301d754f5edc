//! What is stored, as requests see it: which resources there are, their objects, each in the version of the request.
//!
//! Everything here reads. Whoever is asked about a write (admission, guards, hooks, connections) is given this and nothing
//! that writes.

use std::sync::{Arc, OnceLock};

use portico_auth::Authorizer;
use portico_kinds::Kinds;
use portico_kit::offload::Offload;
use portico_machinery::{GroupKind, GroupResource, GroupVersionKind, GroupVersionResource, Status};
use portico_store::{Resource, Store};

use crate::Result;
use crate::builtin::{ResourceIndex, StrategyTable};
use crate::custom::{Conversions, Converted, Definition, Definitions, Shapes};
use crate::failure;
use crate::forms::FormCache;
use crate::recent::Recent;
use crate::scheme::Scheme;
use crate::served::ServedResource;
use crate::settings::{Clock, Settings};
use crate::strategy::Moment;
use crate::webhooks::Webhooks;

/// What all reads share.
pub struct Objects {
    /// Where objects are.
    pub store: Arc<dyn Store>,
    /// The built-in resources.
    pub builtin: Arc<ResourceIndex>,
    /// Kinds that a body may name by mistake.
    pub(crate) scheme: Scheme,
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
    /// Given once there are threads for long work.
    pub(crate) offload: OnceLock<Arc<Offload>>,
    /// Given once there is a way to webhooks.
    pub(crate) conversions: OnceLock<Conversions>,
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
        // It is looked into without waiting.
        store.keep(&Resource::from(crate::definition::resource()));
        Self {
            store,
            builtin: Arc::new(ResourceIndex::new(kinds, strategies)),
            scheme: Scheme::new(kinds),
            definitions: Definitions::new(Shapes::of(kinds)),
            authorizer,
            forms: FormCache::new(settings.form_cache_bytes),
            recent: Recent::new(),
            converted: Converted::new(),
            offload: OnceLock::new(),
            conversions: OnceLock::new(),
            settings,
            clock,
        }
    }

    /// Computes something: on this thread, or on the threads for long work if it is long and there are any. Takes no place
    /// there: the request may have one already.
    ///
    /// # Errors
    /// 500 if the work panicked there or the process ends.
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

    /// The time of a request.
    pub fn moment(&self) -> Moment {
        Moment { now: (self.clock)() }
    }

    /// The resource in the version that our own code speaks.
    ///
    /// # Errors
    /// 404 when no such resource is served.
    pub fn served(&self, resource: &GroupResource) -> Result<Arc<ServedResource>> {
        if let Some(served) = self.builtin.preferred(resource) {
            return Ok(Arc::clone(served));
        }
        let definition = self.definition(resource).filter(|definition| definition.facts.is_reachable());
        let served = definition.and_then(|definition| definition.serving.storage().cloned());
        served.ok_or_else(|| Box::new(Status::no_route()))
    }

    /// The resource in any version that requests may use; nothing where there is none.
    #[must_use]
    pub fn reachable(&self, resource: &GroupResource) -> Option<Arc<ServedResource>> {
        if let Some(served) = self.builtin.preferred(resource) {
            return Some(Arc::clone(served));
        }
        let definition = self.definition(resource).filter(|definition| definition.facts.is_reachable())?;
        definition.serving.served().into_iter().next()
    }

    /// Waits until cached definitions, webhooks and policies show everything that other processes have written to the store before.
    /// Returns at once if no other process can write to it.
    ///
    /// # Errors
    /// 503 if the store cannot be read.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        let definitions = self.definitions.resource();
        if self.store.current(definitions).is_some() {
            return Ok(());
        }
        self.store.snapshot(definitions).await.map(drop).map_err(|error| failure::of_read(error, 0))
    }

    /// The resource in a version that requests may use.
    #[must_use]
    pub fn by_resource(&self, resource: &GroupVersionResource) -> Option<Arc<ServedResource>> {
        if let Some(served) = self.builtin.by_resource(resource) {
            return Some(Arc::clone(served));
        }
        let definition = self.definition(&resource.group_resource())?;
        let reachable =
            definition.facts.is_reachable() && definition.facts.names().plural == resource.resource;
        definition.serving.version(&resource.version).filter(|_| reachable).cloned()
    }

    /// The kind as it is served.
    #[must_use]
    pub fn by_kind(&self, kind: &GroupVersionKind) -> Option<Arc<ServedResource>> {
        if let Some(served) = self.builtin.by_kind(kind) {
            return Some(Arc::clone(served));
        }
        let of_kind: GroupKind = kind.group_kind();
        let definition = self.definitions.of_kind(&*self.store, &of_kind)?;
        definition.serving.version(&kind.version).filter(|_| definition.facts.is_reachable()).cloned()
    }

    /// The kinds of a resource, by its plural or singular name, in this version; without a group those of all groups (upstream's
    /// `RESTMapper.KindsFor`).
    #[must_use]
    pub fn kinds_for(&self, group: &str, version: &str, resource: &str) -> Vec<GroupVersionKind> {
        let resource = resource.to_lowercase();
        let mut kinds = self.builtin.kinds_for(group, version, &resource);
        kinds.extend(self.definitions.kinds_for(&*self.store, group, version, &resource));
        kinds
    }

    /// All versions in which a resource is served, this one among them: those of other groups, too, that show the same objects.
    pub(crate) fn versions_of(&self, served: &ServedResource) -> Vec<Arc<ServedResource>> {
        if served.custom.is_none() {
            return self.builtin.of_storage(&served.info.storage).to_vec();
        }
        let definition = self.definition(&served.resource);
        definition.map(|definition| definition.serving.served()).unwrap_or_default()
    }

    /// The way to webhooks; nothing until there is one.
    #[must_use]
    pub fn webhooks(&self) -> Option<&Webhooks> {
        self.conversions.get().map(|conversions| &conversions.webhooks)
    }

    /// The definition of a resource, reachable or not.
    pub(crate) fn definition(&self, resource: &GroupResource) -> Option<Definition> {
        self.definitions.of_resource(&*self.store, resource)
    }
}
