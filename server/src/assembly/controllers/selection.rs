//! Selection of controllers: those that `--controllers` names and whose kinds are served.

use portico_controllers::names;
use portico_machinery::GroupResource;
use portico_registry::Registry;

use crate::settings::ServerSettings;

/// True if a controller is enabled and `--runtime-config` serves the kinds that it reads.
pub(super) fn is_enabled(settings: &ServerSettings, registry: &Registry, name: &str) -> bool {
    settings.controllers.contains(name)
        && names::required_kinds(name).iter().all(|(group, resource)| {
            let served = registry.objects().served_resource(&GroupResource::new(*group, *resource)).is_ok();
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
