//! Hints for `spec.trafficDistribution` (`trafficdist.ReconcileHints`).

use crate::service_endpoints::slice::{Endpoint, HintTarget, Hints, Slice};

/// Preferred topology of endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopologyPreference {
    /// Endpoints in the same zone.
    Zone,
    /// Endpoints on the same node, then in the same zone.
    Node,
}

impl TopologyPreference {
    /// Parses the field; `None` if there is no preference.
    pub(super) fn of(distribution: Option<&str>) -> Option<Self> {
        match distribution? {
            "PreferClose" | "PreferSameZone" => Some(Self::Zone),
            "PreferSameNode" => Some(Self::Node),
            _ => None,
        }
    }

    fn hints(self, endpoint: &Endpoint) -> Option<Hints> {
        let to_targets =
            |name: &Option<String>| name.iter().map(|name| HintTarget { name: name.clone() }).collect();
        let for_nodes = if self == Self::Node { to_targets(&endpoint.node_name) } else { Vec::new() };
        let hints = Hints { for_zones: to_targets(&endpoint.zone), for_nodes };
        (hints != Hints::default()).then_some(hints)
    }

    fn is_up_to_date(self, endpoint: &Endpoint) -> bool {
        !endpoint.is_ready()
            || endpoint.hints.clone().unwrap_or_default() == self.hints(endpoint).unwrap_or_default()
    }

    fn set(self, slice: &mut Slice) {
        for endpoint in slice.endpoints.iter_mut().filter(|endpoint| endpoint.is_ready()) {
            endpoint.hints = self.hints(endpoint);
        }
    }
}

/// Sets the hints of all ready endpoints. Unchanged slices with outdated hints are added to `update`.
pub(super) fn set_hints(
    preferred: TopologyPreference,
    create: &mut [Slice],
    update: &mut Vec<Slice>,
    unchanged: Vec<Slice>,
) {
    let is_outdated =
        |slice: &Slice| slice.endpoints.iter().any(|endpoint| !preferred.is_up_to_date(endpoint));
    update.extend(unchanged.into_iter().filter(is_outdated));
    create.iter_mut().chain(update).for_each(|slice| preferred.set(slice));
}

/// Removes all hints. Unchanged slices with hints are added to `update` (`RemoveHintsFromSlices`).
pub(super) fn remove_hints(create: &mut [Slice], update: &mut Vec<Slice>, unchanged: Vec<Slice>) {
    let has_hints = |slice: &Slice| slice.endpoints.iter().any(|endpoint| endpoint.hints.is_some());
    update.extend(unchanged.into_iter().filter(has_hints));
    for slice in create.iter_mut().chain(update) {
        slice.endpoints.iter_mut().for_each(|endpoint| endpoint.hints = None);
    }
}
