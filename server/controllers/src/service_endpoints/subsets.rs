//! Subsets of Endpoints (addresses and ports), and their canonical form (`endpoints.RepackSubsets`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::slice::TargetRef;

/// A subset: all its ports are available at all its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Subset {
    /// Addresses that are ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Addresses that are not ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_ready_addresses: Vec<Address>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<SubsetPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Address {
    pub ip: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Name of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Object that the address belongs to, usually a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubsetPort {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub port: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// Application protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// IP address and UID of the target: pods on the host's network share an address.
type AddressKey = (String, String);

impl Address {
    fn key(&self) -> AddressKey {
        let uid = self.target_ref.as_ref().map(|target| target.uid.clone());
        (self.ip.clone(), uid.unwrap_or_default())
    }

    /// Returns the address without the resource version of its target.
    fn without_resource_version(&self) -> Self {
        let mut address = self.clone();
        if let Some(target) = &mut address.target_ref {
            target.resource_version.clear();
        }
        address
    }
}

/// Returns the canonical form: ports available at the same addresses are in one subset, addresses are sorted, and an address that
/// is not ready for a port in any subset is not ready for the port.
#[must_use]
pub fn repack(subsets: &[Subset]) -> Vec<Subset> {
    let mut addresses: BTreeMap<AddressKey, Address> = BTreeMap::new();
    let mut offered: BTreeMap<Option<SubsetPort>, BTreeMap<AddressKey, bool>> = BTreeMap::new();
    for subset in subsets {
        // Addresses without ports are kept as well.
        let ports: Vec<Option<SubsetPort>> = match subset.ports.as_slice() {
            [] => vec![None],
            ports => ports.iter().cloned().map(Some).collect(),
        };
        let ready = subset.addresses.iter().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().map(|address| (address, false));
        for (address, is_ready) in ready.chain(not_ready) {
            addresses.entry(address.key()).or_insert_with(|| address.clone());
            for port in &ports {
                let states = offered.entry(port.clone()).or_default();
                *states.entry(address.key()).or_insert(true) &= is_ready;
            }
        }
    }
    let mut ports_at: BTreeMap<BTreeMap<AddressKey, bool>, BTreeSet<SubsetPort>> = BTreeMap::new();
    for (port, states) in offered {
        ports_at.entry(states).or_default().extend(port.filter(|port| port.port > 0));
    }
    let of = |(states, ports): (BTreeMap<AddressKey, bool>, BTreeSet<SubsetPort>)| {
        let mut subset = Subset { ports: ports.into_iter().collect(), ..Subset::default() };
        for (key, is_ready) in states {
            let list = if is_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
            list.extend(addresses.get(&key).cloned());
        }
        subset
    };
    ports_at.into_iter().map(of).collect()
}

/// Returns true if the canonical forms are equal, ignoring resource versions of targets.
#[must_use]
pub fn are_equal(one: &[Subset], other: &[Subset]) -> bool {
    let normal = |subsets: &[Subset]| {
        let mut all = repack(subsets);
        for subset in &mut all {
            for address in subset.addresses.iter_mut().chain(&mut subset.not_ready_addresses) {
                *address = address.without_resource_version();
            }
        }
        all
    };
    normal(one) == normal(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subsets(json: &str) -> Vec<Subset> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn ports_at_the_same_addresses_share_a_subset() {
        let rows = [
            ("[]", "[]"),
            (r#"[{"addresses":[{"ip":"2"},{"ip":"1"}]}]"#, r#"[{"addresses":[{"ip":"1"},{"ip":"2"}]}]"#),
            (
                r#"[{"addresses":[{"ip":"1"}],"ports":[{"port":8}]},{"addresses":[{"ip":"1"}],"ports":[{"port":9}]}]"#,
                r#"[{"addresses":[{"ip":"1"}],"ports":[{"port":8},{"port":9}]}]"#,
            ),
            (
                r#"[{"addresses":[{"ip":"1"}],"ports":[{"port":8}]},{"addresses":[{"ip":"2"}],"ports":[{"port":8}]}]"#,
                r#"[{"addresses":[{"ip":"1"},{"ip":"2"}],"ports":[{"port":8}]}]"#,
            ),
            (
                r#"[{"addresses":[{"ip":"1"}],"ports":[{"port":8}]},{"notReadyAddresses":[{"ip":"1"}],"ports":[{"port":8}]}]"#,
                r#"[{"notReadyAddresses":[{"ip":"1"}],"ports":[{"port":8}]}]"#,
            ),
            (
                r#"[{"addresses":[{"ip":"1"},{"ip":"2"}],"ports":[{"port":8}]},{"addresses":[{"ip":"1"}],"ports":[{"port":9}]}]"#,
                r#"[{"addresses":[{"ip":"1"}],"ports":[{"port":9}]},{"addresses":[{"ip":"1"},{"ip":"2"}],"ports":[{"port":8}]}]"#,
            ),
        ];
        for (given, want) in rows {
            assert_eq!(repack(&subsets(given)), subsets(want), "{given}");
            assert_eq!(repack(&subsets(want)), subsets(want), "{want}");
        }
    }

    #[test]
    fn resource_versions_of_targets_are_ignored_and_uids_are_compared() {
        let one = |uid: &str, version: &str| {
            subsets(&format!(
                r#"[{{"addresses":[{{"ip":"1","targetRef":{{"uid":"{uid}","resourceVersion":"{version}"}}}}]}}]"#
            ))
        };
        assert!(are_equal(&one("a", "1"), &one("a", "2")));
        assert!(!are_equal(&one("a", "1"), &one("b", "1")));
    }
}
