//! The admission plugins that change or refuse objects of their kinds, in upstream's order.
//!
//! A plugin is a room of its own; this table is all that generic code knows of them.

mod claim_resize;
mod default_class;
mod in_use_protection;
mod node_taints;
mod priority;
mod runtime_class;
mod service_account;
mod tolerations;

use std::future::Future;
use std::pin::Pin;

use portico_machinery::{GroupResource, Object, Status};

use crate::Result;
use crate::registry::Inner;
use crate::served::Served;

/// A write on its way, which plugins may change.
pub(crate) struct Change<'a> {
    /// The kind that is written.
    pub(crate) served: &'a Served,
    /// What is written: complete, not prepared, not judged.
    pub(crate) new: &'a mut Object,
    /// What is there; nothing for a create.
    pub(crate) old: Option<&'a Object>,
}

impl Change<'_> {
    /// 403 in the words of a plugin.
    fn forbidden(&self, why: &str) -> Box<Status> {
        let name = [self.new.name(), self.new.generate_name()].into_iter().find(|name| !name.is_empty());
        Box::new(Status::forbidden(&self.served.resource, name.unwrap_or("Unknown"), why))
    }
}

/// A plugin at work.
pub(crate) type Admitting<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Something that changes or refuses writes of some kinds.
pub(crate) trait Plugin: Send + Sync {
    /// Upstream's name, as the flags know it.
    fn name(&self) -> &'static str;

    /// Whether it looks at this kind at all.
    fn handles(&self, group: &str, resource: &str) -> bool;

    /// Changes the write, or refuses it.
    fn admit<'a>(&'a self, inner: &'a Inner, change: Change<'a>) -> Admitting<'a>;
}

/// All plugins, in order.
const PLUGINS: [&dyn Plugin; 9] = [
    &service_account::ServiceAccount,
    &node_taints::TaintNodesByCondition,
    &priority::Priority,
    &tolerations::DefaultTolerationSeconds,
    &default_class::STORAGE,
    &in_use_protection::StorageObjectInUseProtection,
    &claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClass,
    &default_class::INGRESS,
];

impl Inner {
    /// Lets every plugin that is on have its say on a write of a whole object.
    pub(crate) async fn shape(&self, served: &Served, new: &mut Object, old: Option<&Object>) -> Result<()> {
        let GroupResource { group, resource } = &served.resource;
        for plugin in PLUGINS.iter().filter(|plugin| plugin.handles(group, resource)) {
            if !self.settings.disabled_admission_plugins.iter().any(|off| off == plugin.name()) {
                plugin.admit(self, Change { served, new: &mut *new, old }).await?;
            }
        }
        Ok(())
    }

    /// All objects of a resource of the cluster, decoded; none when it is not served.
    async fn all(&self, group: &str, resource: &str) -> Result<Vec<Object>> {
        let Ok(served) = self.served(&GroupResource::new(group, resource)) else { return Ok(Vec::new()) };
        let page = self.list(&served, "", &crate::options::ListOptions::default()).await?;
        Ok(page.records.iter().map(|record| crate::stored::decode(record)).collect())
    }

    /// An object of another kind, if it is there.
    async fn object_of(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>> {
        let served = self.served(&GroupResource::new(group, resource))?;
        let record = self.read(&served, namespace, name).await?;
        Ok(record.map(|record| crate::stored::decode(&record)))
    }
}
