//! Registration of the storage version of each resource, derived from the kinds (gates `StorageVersionAPI` and
//! `APIServerIdentity`).

use std::collections::{BTreeMap, HashSet};

use portico_controllers::storage_versions::{Registration, StorageVersions};
use portico_kinds::{KindInfo, Kinds, LoadError};
use portico_machinery::{GroupResource, GroupVersion};

use crate::settings::ServerSettings;

/// Gates that must both be enabled.
const GATES: [&str; 2] = ["StorageVersionAPI", "APIServerIdentity"];

/// Returns the publisher of storage versions; `None` unless the gates are enabled. `server` is the identity of this server.
pub(super) fn publisher(
    settings: &ServerSettings,
    kinds: &Kinds,
    server: &str,
) -> Result<Option<StorageVersions>, LoadError> {
    if !GATES.iter().all(|gate| settings.features.enabled(gate)) {
        return Ok(None);
    }
    Ok(Some(StorageVersions::new(server, registrations(kinds, &*Kinds::all()?))))
}

/// Returns one registration for each stored resource that is served. `all_kinds` contains all versions, served or not.
fn registrations(kinds: &Kinds, all_kinds: &Kinds) -> Vec<Registration> {
    let mut resources: BTreeMap<(&str, &str), &KindInfo> = BTreeMap::new();
    for info in kinds.iter().filter(|info| info.stored) {
        resources.entry((&info.gvk.group, &info.resource)).or_insert(info);
    }
    let mut covered_kinds = HashSet::new();
    let mut registrations = Vec::new();
    for info in resources.into_values() {
        let resource = info.group_resource();
        if !covered_kinds.contains(&resource) {
            let registration = registration(info, resource, kinds, all_kinds);
            covered_kinds.extend(registration.covers.iter().cloned());
            registrations.push(registration);
        }
    }
    registrations
}

fn registration(info: &KindInfo, resource: GroupResource, kinds: &Kinds, all_kinds: &Kinds) -> Registration {
    let mut decodable: Vec<GroupVersion> = Vec::new();
    let same_kind = all_kinds.iter().filter(|other| other.group_kind() == info.group_kind());
    for other in same_kind.chain(kinds.equivalents(&resource)) {
        if !decodable.contains(&other.group_version()) {
            decodable.push(other.group_version());
        }
    }
    let served = kinds.iter().filter(|other| other.group_resource() == resource);
    let mut covers: Vec<GroupResource> = kinds.equivalents(&resource).map(|i| i.group_resource()).collect();
    covers.dedup();
    Registration {
        encoding: GroupVersion::new(&info.storage.group, &info.storage_version).to_string(),
        decodable: decodable.iter().map(ToString::to_string).collect(),
        served: served.map(|info| info.group_version().to_string()).collect(),
        covers,
        resource,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_storage_is_registered_once_with_all_its_versions() {
        let (kinds, all_kinds) = (Kinds::builtin().unwrap(), Kinds::all().unwrap());
        let all = registrations(&kinds, &all_kinds);
        let find = |name: &str| all.iter().find(|r| r.name() == name).unwrap();
        let scalers = find("autoscaling.horizontalpodautoscalers");
        assert_eq!(scalers.encoding, "autoscaling/v2");
        assert_eq!(scalers.decodable, ["autoscaling/v2", "autoscaling/v1"]);
        assert_eq!(scalers.served, scalers.decodable);
        let events = find("core.events");
        assert_eq!((events.decodable.len(), events.served.len(), events.covers.len()), (2, 1, 2));
        assert!(!all.iter().any(|r| r.name() == "events.k8s.io.events"));
        let addresses = find("networking.k8s.io.ipaddresses");
        assert_eq!(addresses.decodable, ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"]);
        assert_eq!(addresses.served, ["networking.k8s.io/v1"]);
        for registration in &all {
            assert!(registration.decodable.contains(&registration.encoding), "{registration:?}");
        }
    }
}
