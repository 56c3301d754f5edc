//! The admission plugins that change or refuse objects of their kinds, in upstream's order.
//!
//! A plugin is a room of its own; this table is all that generic code knows of them.

mod claim_resize;
mod default_class;
mod in_use_protection;
mod limit_ranger;
mod node_taints;
mod pod_security;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod tolerations;
mod topology_labels;

use std::future::Future;
use std::pin::Pin;

use portico_machinery::{GroupResource, Object, Status};

use crate::Result;
use crate::registry::{Part, Verbs};
use crate::served::ServedResource;
use crate::strategy::Write;
pub(crate) use resource_quota::SharedTransactions;

/// A write on its way, which plugins may change.
pub(crate) struct Change<'a> {
    /// The kind that is written.
    pub(crate) served: &'a ServedResource,
    /// The object or a subresource.
    pub(crate) part: Part<'a>,
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

/// A plugin that judges, and may warn.
pub(crate) type Judging<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>>> + Send + 'a>>;

/// A valid write, to be judged.
#[derive(Clone, Copy)]
pub(crate) struct Judged<'a> {
    /// The kind that is written.
    pub(crate) served: &'a ServedResource,
    /// What is written, by whom.
    pub(crate) write: &'a Write<'a>,
}

impl Judged<'_> {
    /// 403 in the words of a plugin.
    fn forbidden(&self, why: &str) -> Box<Status> {
        Box::new(Status::forbidden(&self.served.resource, self.write.new.name(), why))
    }
}

/// What a plugin looks at: group, resource, and the subresource or nothing.
pub(crate) type Target = (&'static str, &'static str, &'static str);

/// Pods themselves.
const PODS: &[Target] = &[("", "pods", "")];

/// Something that changes or refuses writes of some kinds.
pub(crate) trait Plugin: Send + Sync {
    /// Upstream's name, as the flags know it.
    fn name(&self) -> &'static str;

    /// What it looks at; of nothing else it is told.
    fn targets(&self) -> &'static [Target];

    /// Changes a write before it is prepared and judged, or refuses it.
    fn admit<'a>(&'a self, _inner: &'a Verbs, _change: Change<'a>) -> Admitting<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Judges a write that is valid; what it says is for whoever writes.
    fn judge<'a>(&'a self, _inner: &'a Verbs, _judged: Judged<'a>) -> Judging<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// All plugins, in order. ResourceQuota comes behind them, with the transaction.
const PLUGINS: [&dyn Plugin; 12] = [
    &limit_ranger::LimitRanger,
    &service_account::ServiceAccount,
    &node_taints::TaintNodesByCondition,
    &pod_security::PodSecurity,
    &priority::Priority,
    &tolerations::DefaultTolerationSeconds,
    &default_class::STORAGE,
    &in_use_protection::StorageObjectInUseProtection,
    &claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClass,
    &default_class::INGRESS,
    &topology_labels::PodTopologyLabels,
];

impl Verbs {
    /// Lets every plugin that is on change a write of an object or a subresource.
    pub async fn shape(
        &self,
        served: &ServedResource,
        part: Part<'_>,
        new: &mut Object,
        old: Option<&Object>,
    ) -> Result<()> {
        for plugin in self.plugins(&served.resource, part) {
            plugin.admit(self, Change { served, part, new: &mut *new, old }).await?;
        }
        Ok(())
    }

    /// Lets every plugin that is on judge a valid write; their warnings.
    pub(crate) async fn judge(&self, served: &ServedResource, write: &Write<'_>) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for plugin in self.plugins(&served.resource, write.part) {
            warnings.extend(plugin.judge(self, Judged { served, write }).await?);
        }
        Ok(warnings)
    }

    fn plugins<'a>(
        &'a self,
        resource: &'a GroupResource,
        part: Part<'a>,
    ) -> impl Iterator<Item = &'static dyn Plugin> + 'a {
        let subresource = match part {
            Part::Main => "",
            Part::Subresource(name) => name,
        };
        let at = (resource.group.as_str(), resource.resource.as_str(), subresource);
        PLUGINS
            .into_iter()
            .filter(move |plugin| plugin.targets().contains(&at) && !self.is_off(plugin.name()))
    }

    /// Whether a plugin is turned off.
    fn is_off(&self, plugin: &str) -> bool {
        self.settings.disabled_admission_plugins.iter().any(|off| off == plugin)
    }

    /// All objects of a resource in a namespace, decoded; none when it is not served.
    async fn all_in(&self, namespace: &str, resource: &GroupResource) -> Result<Vec<Object>> {
        let Ok(served) = self.served(resource) else { return Ok(Vec::new()) };
        let snapshot = self.snapshot(&served).await?;
        Ok(snapshot.range(Some(namespace), None).map(|record| crate::stored::decode(record)).collect())
    }

    /// All objects of a resource of the cluster, decoded; none when it is not served.
    async fn all(&self, group: &str, resource: &str) -> Result<Vec<Object>> {
        let Ok(served) = self.served(&GroupResource::new(group, resource)) else { return Ok(Vec::new()) };
        let page = self.list(&served, "", &crate::options::ListOptions::default()).await?;
        Ok(page.records.iter().map(|record| crate::stored::decode(record)).collect())
    }
}
