//! Controllers of CustomResourceDefinitions, and upstream's hooks that start them. They are part of the API server and
//! independent of `--controllers`.

use std::sync::Arc;

use portico_controllers::auto_register::AutoRegister;
use portico_controllers::crd::CustomResources;
use portico_controllers::log::Listener;
use portico_kinds::Kinds;
use portico_kit::hooks::{HookContext, Hooks};
use portico_kit::lifecycle::Signal;
use portico_kit::metrics;
use portico_kit::workqueue::QueueMetrics;
use portico_registry::{Registry, definition};

use crate::assembly::error::StartError;
use crate::assembly::signal_wait::wait_for_signal;

/// Controllers of definitions; empty if `--runtime-config` disables definitions.
pub(super) struct Definitions {
    custom: Option<CustomResources>,
}

impl Definitions {
    pub(super) fn new(kinds: &Kinds, auto_register: &AutoRegister, metrics: &metrics::Registry) -> Self {
        let is_served = definition::are_served(kinds);
        let queues = QueueMetrics::new(metrics);
        Self { custom: is_served.then(|| CustomResources::new(auto_register.clone(), &queues)) }
    }

    /// Returns the signal that the APIServices of all definitions are desired. Before that, existing ones would be removed.
    pub(super) fn api_services_known(&self) -> Option<Signal> {
        self.custom.as_ref().map(CustomResources::synced)
    }

    /// Returns the listener that finalizes deleted instances; `None` if definitions are not served.
    pub(super) fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.custom.as_ref().map(|custom| Arc::new(custom.finalizer()) as Arc<dyn Listener>)
    }

    pub(super) fn add_hooks(&self, registry: &Registry, hooks: &Hooks) -> Result<(), StartError> {
        let (r, custom) = (registry.clone(), self.custom.clone());
        hooks.add_post_start("start-apiextensions-informers", move |cx: HookContext| async move {
            if let Some(custom) = custom {
                cx.tasks.spawn_critical("apiextensions-informers", custom.run_informer(r, cx.tasks.clone()));
            }
            Ok(())
        })?;
        let (r, custom) = (registry.clone(), self.custom.clone());
        hooks.add_post_start("start-apiextensions-controllers", move |cx: HookContext| async move {
            if let Some(custom) = custom {
                custom.run_workers(&r, &cx.tasks);
                wait_for_signal(&cx, &custom.synced()).await?;
            }
            Ok(())
        })?;
        let synced = self.api_services_known();
        hooks.add_post_start("crd-informer-synced", move |cx: HookContext| async move {
            match synced {
                Some(synced) => wait_for_signal(&cx, &synced).await,
                None => Ok(()),
            }
        })?;
        Ok(())
    }
}
