//! What a release serves of the built-in kinds: what has not gone, and what has come (upstream's `removeDeletedKinds` and
//! `removeUnintroducedKinds`).

use std::collections::HashSet;
use std::sync::Arc;

use portico_machinery::expiration::Evaluator;
use portico_machinery::version_order::preferred_first;
use portico_machinery::{GroupResource, GroupVersion, GroupVersionResource};

use crate::kind::KindInfo;
use crate::registry::Kinds;
use crate::runtime_config::{RuntimeConfig, RuntimeConfigError};

/// What is served, and why a server may not start so.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) kinds: HashSet<GroupVersionResource>,
    pub(crate) problem: Option<RuntimeConfigError>,
}

/// Decides about all kinds; those of lower priority first, because higher ones may follow them.
pub(crate) fn served(kinds: &Kinds, evaluator: &Evaluator, wanted: &RuntimeConfig) -> Served {
    let mut infos: Vec<&Arc<KindInfo>> =
        kinds.iter().filter(|info| is_enabled(kinds, info, evaluator, wanted)).collect();
    infos.retain(|info| evaluator.keeps(&info.lifecycle));
    infos.sort_by(|a, b| preferred_first(&b.gvk.version, &a.gvk.version));
    let (mut served, mut followed) = (Served::default(), HashSet::<GroupResource>::new());
    let mut left_out: Vec<GroupVersion> = Vec::new();
    for info in infos {
        let by_name = wanted.names(&info.gvr());
        let follows = evaluator.forward_compatible && followed.contains(&info.group_resource());
        let asked = evaluator.runtime_config_forward_compatible
            && (by_name || wanted.names_version(&info.group_version()));
        if evaluator.has(&info.lifecycle) || follows || asked {
            if !is_alpha(&info.gvk.version) {
                followed.insert(info.group_resource());
            }
            served.kinds.insert(info.gvr());
            continue;
        }
        if by_name {
            served.problem.get_or_insert_with(|| unintroduced(info, evaluator));
        }
        left_out.push(info.group_version());
    }
    let is_empty = |gv: &GroupVersion| {
        !served.kinds.iter().any(|kind| kind.group == gv.group && kind.version == gv.version)
    };
    let missing = left_out.into_iter().find(|gv| wanted.names_version(gv) && is_empty(gv));
    if let Some(group_version) = missing {
        let current = evaluator.current;
        served.problem.get_or_insert(RuntimeConfigError::VersionToCome { group_version, current });
    }
    served
}

fn unintroduced(info: &KindInfo, evaluator: &Evaluator) -> RuntimeConfigError {
    RuntimeConfigError::ResourceToCome {
        resource: info.gvr(),
        introduced: info.lifecycle.introduced.unwrap_or(evaluator.current),
        current: evaluator.current,
    }
}

/// Whether a version is on: by itself, or because a lower one is (`EmulationForwardCompatibleResourceConfig`).
fn is_enabled(kinds: &Kinds, info: &KindInfo, evaluator: &Evaluator, wanted: &RuntimeConfig) -> bool {
    let lower = |other: &KindInfo| {
        other.gvk.group == info.gvk.group
            && !is_alpha(&other.gvk.version)
            && preferred_first(&info.gvk.version, &other.gvk.version).is_lt()
            && wanted.serves(other)
    };
    wanted.serves(info)
        || evaluator.forward_compatible
            && !wanted.refuses(&info.gvr())
            && kinds.iter().any(|other| lower(other))
}

fn is_alpha(version: &str) -> bool {
    version.contains("alpha")
}
