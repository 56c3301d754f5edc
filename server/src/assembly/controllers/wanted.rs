//! Which controllers are started: those that `--controllers` names, as far as the kinds that they read are served.

use portico_controllers::names;
use portico_machinery::GroupResource;
use portico_registry::Registry;

use crate::settings::ServerSettings;

/// Whether a controller is wanted and can work: `--runtime-config` may have turned off a kind that it reads.
pub(super) fn is_wanted(settings: &ServerSettings, registry: &Registry, name: &str) -> bool {
    settings.controllers.contains(name)
        && names::kinds_read(name).iter().all(|(group, resource)| {
            let served = registry.objects().served(&GroupResource::new(*group, *resource)).is_ok();
            if !served {
                tracing::debug!(
                    controller = name,
                    group,
                    resource,
                    "controller disabled, resource not served"
                );
            }
            served
        })
}
