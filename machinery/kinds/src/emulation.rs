//! Selection of the built-in kinds that an emulated release serves (upstream's `removeDeletedKinds` and
//! `removeUnintroducedKinds`).

use std::collections::HashSet;
use std::sync::Arc;

use portico_machinery::expiration::ExpirationEvaluator;
use portico_machinery::version_order::preferred_first;
use portico_machinery::{GroupResource, GroupVersion, GroupVersionResource};

use crate::kind::KindInfo;
use crate::registry::Kinds;
use crate::runtime_config::{RuntimeConfig, RuntimeConfigError};

/// Served kinds, and the configuration error, if any.
#[derive(Debug, Default)]
pub(crate) struct ServedKinds {
    pub(crate) kinds: HashSet<GroupVersionResource>,
    pub(crate) error: Option<RuntimeConfigError>,
}

/// Selects the served kinds. Versions of lower priority are processed first, because higher ones can depend on them.
pub(crate) fn select_served(
    kinds: &Kinds,
    evaluator: &ExpirationEvaluator,
    config: &RuntimeConfig,
) -> ServedKinds {
    let mut infos: Vec<&Arc<KindInfo>> =
        kinds.iter().filter(|info| is_enabled(kinds, info, evaluator, config)).collect();
    infos.retain(|info| evaluator.is_not_removed(&info.lifecycle));
    infos.sort_by(|a, b| preferred_first(&b.gvk.version, &a.gvk.version));
    let (mut served, mut served_resources) = (ServedKinds::default(), HashSet::<GroupResource>::new());
    let mut not_introduced: Vec<GroupVersion> = Vec::new();
    for info in infos {
        let enabled_by_name = config.enables_resource(&info.gvr());
        let is_newer_version =
            evaluator.forward_compatible && served_resources.contains(&info.group_resource());
        let is_requested = evaluator.runtime_config_forward_compatible
            && (enabled_by_name || config.enables_version(&info.group_version()));
        if evaluator.is_introduced(&info.lifecycle) || is_newer_version || is_requested {
            if !is_alpha(&info.gvk.version) {
                served_resources.insert(info.group_resource());
            }
            served.kinds.insert(info.gvr());
            continue;
        }
        if enabled_by_name {
            served.error.get_or_insert_with(|| not_introduced_error(info, evaluator));
        }
        not_introduced.push(info.group_version());
    }
    let is_empty = |gv: &GroupVersion| {
        !served.kinds.iter().any(|kind| kind.group == gv.group && kind.version == gv.version)
    };
    let missing = not_introduced.into_iter().find(|gv| config.enables_version(gv) && is_empty(gv));
    if let Some(group_version) = missing {
        let current = evaluator.current;
        served.error.get_or_insert(RuntimeConfigError::VersionNotIntroduced { group_version, current });
    }
    served
}

fn not_introduced_error(info: &KindInfo, evaluator: &ExpirationEvaluator) -> RuntimeConfigError {
    RuntimeConfigError::ResourceNotIntroduced {
        resource: info.gvr(),
        introduced: info.lifecycle.introduced.unwrap_or(evaluator.current),
        current: evaluator.current,
    }
}

/// True if a version is enabled directly or because a lower version is (`EmulationForwardCompatibleResourceConfig`).
fn is_enabled(
    kinds: &Kinds,
    info: &KindInfo,
    evaluator: &ExpirationEvaluator,
    config: &RuntimeConfig,
) -> bool {
    let is_enabled_lower_version = |other: &KindInfo| {
        other.gvk.group == info.gvk.group
            && !is_alpha(&other.gvk.version)
            && preferred_first(&info.gvk.version, &other.gvk.version).is_lt()
            && config.is_served(other)
    };
    config.is_served(info)
        || evaluator.forward_compatible
            && !config.disables_resource(&info.gvr())
            && kinds.iter().any(|other| is_enabled_lower_version(other))
}

fn is_alpha(version: &str) -> bool {
    version.contains("alpha")
}
