//! Decides the slices that mirror Endpoints (`reconciler.reconcile` of `pkg/controller/endpointslicemirroring`). Pure.

use std::collections::BTreeMap;

use portico_machinery::Object;

use crate::service_endpoints::address;
use crate::service_endpoints::endpoints::LEADER_ANNOTATION;
use crate::service_endpoints::slice::{
    Conditions, Endpoint, EndpointSet, MANAGED_BY_LABEL, Owner, Port, PortSet, SERVICE_LABEL, Slice,
};
use crate::service_endpoints::slice_writer::SliceChanges;
use crate::service_endpoints::subsets::{Address, Subset, SubsetPort, repack};
use crate::service_endpoints::trigger_times;

/// Value of the label `managed-by` of slices that mirror Endpoints.
pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Label whose value `true` excludes Endpoints from mirroring.
const SKIP_LABEL: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Annotation that is not copied to slices.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Writes of slices, and numbers of addresses that were not mirrored.
#[derive(Debug, Default)]
pub struct MirrorDecision {
    pub changes: SliceChanges,
    /// Number of invalid addresses.
    pub invalid: usize,
    /// Number of addresses that are not mirrored, including invalid ones.
    pub skipped: usize,
}

/// Desired endpoints with one address type and one set of ports.
#[derive(Debug, Default)]
struct DesiredEndpoints {
    ports: Vec<Port>,
    endpoints: EndpointSet,
}

type ByPorts<T> = BTreeMap<(String, PortSet), T>;

/// Returns true if Endpoints may be mirrored (`shouldMirror`).
#[must_use]
pub fn may_mirror(endpoints: &Object) -> bool {
    endpoints.label(SKIP_LABEL) != Some("true") && endpoints.annotation(LEADER_ANNOTATION).is_none()
}

/// Decides the slices. `max` is the maximum number of mirrored addresses per subset.
#[must_use]
pub fn decide(endpoints: &Object, existing: Vec<Slice>, max: usize) -> MirrorDecision {
    let mut decision = MirrorDecision::default();
    let subsets: Vec<Subset> = endpoints.decode(&["subsets"]).unwrap_or_default();
    let desired = desired_endpoints(&repack(&subsets), max, &mut decision);
    let mut by_ports: ByPorts<Vec<Slice>> = ByPorts::new();
    for slice in existing {
        by_ports.entry((slice.address_type.clone(), slice.port_set())).or_default().push(slice);
    }
    let changes = &mut decision.changes;
    for (key, wanted) in desired {
        let mut slices = by_ports.remove(&key).unwrap_or_default();
        if wanted.endpoints.is_empty() {
            changes.delete.append(&mut slices);
            continue;
        }
        let mut slices = slices.into_iter();
        let first = slices.next();
        changes.delete.extend(slices);
        if first.as_ref().is_some_and(|first| is_up_to_date(endpoints, first, &wanted.endpoints)) {
            continue;
        }
        let mut slice = new_slice(endpoints, &key.0, wanted.ports);
        slice.endpoints = wanted.endpoints.into_values().take(max).collect();
        match first {
            Some(first) => {
                slice.name = first.name;
                changes.update.push(slice);
            }
            None => changes.create.push(slice),
        }
    }
    changes.delete.extend(by_ports.into_values().flatten());
    changes.recycle(|old, new| old.address_type == new.address_type);
    if endpoints.deletion_timestamp().is_some() {
        changes.create.clear();
    }
    decision
}

fn desired_endpoints(
    subsets: &[Subset],
    max: usize,
    decision: &mut MirrorDecision,
) -> ByPorts<DesiredEndpoints> {
    let mut by_ports = ByPorts::<DesiredEndpoints>::new();
    for subset in subsets {
        let ports: Vec<Port> = subset.ports.iter().map(port_of).collect();
        let set: PortSet = ports.iter().cloned().collect();
        let ready = subset.addresses.iter().map(|address| (address, true));
        let all = ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false)));
        let mut added = 0;
        for (address, is_ready) in all {
            if added >= max {
                break;
            }
            let Some((endpoint, address_type)) = endpoint_of(address, is_ready) else {
                decision.invalid += 1;
                continue;
            };
            let endpoint_set = by_ports.entry((address_type.to_owned(), set.clone())).or_default();
            endpoint_set.ports.clone_from(&ports);
            endpoint_set.endpoints.insert(endpoint.key(), endpoint);
            added += 1;
        }
        decision.skipped += subset.addresses.len() + subset.not_ready_addresses.len() - added;
    }
    by_ports
}

fn port_of(port: &SubsetPort) -> Port {
    Port {
        name: Some(port.name.clone()),
        port: Some(port.port),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    }
}

/// Converts an address to an endpoint and its address type (`addressToEndpoint`).
fn endpoint_of(address: &Address, is_ready: bool) -> Option<(Endpoint, &'static str)> {
    let ip = address::parse(&address.ip)?;
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Conditions { ready: Some(is_ready), ..Conditions::default() },
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        hostname: Some(address.hostname.clone()).filter(|hostname| !hostname.is_empty()),
        ..Endpoint::default()
    };
    Some((endpoint, if ip.is_ipv6() { "IPv6" } else { "IPv4" }))
}

/// Returns the annotations of Endpoints that are copied to their slices.
fn annotations_of(endpoints: &Object) -> BTreeMap<String, String> {
    let all = endpoints.at(&["metadata", "annotations"]);
    let copied = all.entries().filter(|(key, _)| ![trigger_times::ANNOTATION, LAST_APPLIED].contains(key));
    copied.map(|(key, value)| (key.to_owned(), value.str().to_owned())).collect()
}

/// Returns true if a slice is up to date.
fn is_up_to_date(endpoints: &Object, slice: &Slice, desired: &EndpointSet) -> bool {
    let mut labels = slice.labels.clone();
    labels.remove(MANAGED_BY_LABEL);
    labels.remove(SERVICE_LABEL);
    let annotations = slice.object.at(&["metadata", "annotations"]);
    let current_annotations: BTreeMap<String, String> =
        annotations.entries().map(|(key, value)| (key.to_owned(), value.str().to_owned())).collect();
    let owners = slice.object.owner_references();
    let has_other_owner = owners.iter().any(|owner| {
        owner.kind == "Endpoints" && owner.name == endpoints.name() && owner.uid != endpoints.uid()
    });
    let is_desired = |endpoint: &Endpoint| {
        desired.get(&endpoint.key()).is_some_and(|wanted| wanted.equals_beyond_key(endpoint))
    };
    !has_other_owner
        && slice.endpoints.len() == desired.len()
        && slice.endpoints.iter().all(is_desired)
        && labels == endpoints.labels()
        && current_annotations == annotations_of(endpoints)
}

fn new_slice(endpoints: &Object, address_type: &str, ports: Vec<Port>) -> Slice {
    let (namespace, name, uid) = (endpoints.namespace(), endpoints.name(), endpoints.uid());
    let mut slice = Slice::new(&Owner { kind: "Endpoints", namespace, name, uid }, address_type, ports);
    slice.labels = endpoints.labels();
    slice.labels.insert(SERVICE_LABEL.to_owned(), name.to_owned());
    slice.labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
    let annotations = annotations_of(endpoints);
    if !annotations.is_empty() {
        slice.object.set(&["metadata", "annotations"], annotations);
    }
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(more: &str, subsets: &str) -> Object {
        let json = format!(
            r#"{{"metadata":{{"name":"e","namespace":"n","uid":"u","labels":{{"app":"x"}}{more}}},"subsets":{subsets}}}"#
        );
        Object::from_json(json.as_bytes()).unwrap()
    }

    const ONE: &str =
        r#"[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"name":"http","port":80,"protocol":"TCP"}]}]"#;

    fn written(decision: MirrorDecision) -> Vec<Slice> {
        let SliceChanges { create, update, .. } = decision.changes;
        let with_name = |(at, mut slice): (usize, Slice)| {
            if slice.name.is_empty() {
                slice.name = format!("e-{at}");
            }
            Slice::of_object(Object::from_json(&slice.into_object().to_json()).unwrap())
        };
        create.into_iter().chain(update).enumerate().map(with_name).collect()
    }

    fn counts(decision: &MirrorDecision) -> (usize, usize, usize) {
        let changes = &decision.changes;
        (changes.create.len(), changes.update.len(), changes.delete.len())
    }

    #[test]
    fn endpoints_are_mirrored_with_labels_and_annotations_once() {
        let annotated = endpoints(
            r#","annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"x"}"#,
            ONE,
        );
        let existing = written(decide(&annotated, Vec::new(), 100));
        assert_eq!(existing.len(), 1);
        let json = String::from_utf8(existing[0].object.to_json()).unwrap();
        for part in [
            r#""annotations":{"a":"b"}"#,
            r#""labels":{"app":"x","endpointslice.kubernetes.io/managed-by":"endpointslicemirroring-controller.k8s.io","kubernetes.io/service-name":"e"}"#,
            r#""ownerReferences":[{"apiVersion":"v1","kind":"Endpoints","name":"e","uid":"u","controller":true,"blockOwnerDeletion":true}]"#,
            r#""endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}}]"#,
        ] {
            assert!(json.contains(part), "{part} is not in {json}");
        }
        assert!(decide(&annotated, existing.clone(), 100).changes.is_empty());
        assert_eq!(counts(&decide(&endpoints("", ONE), existing, 100)), (0, 1, 0));
    }

    #[test]
    fn families_are_mirrored_separately_and_invalid_or_excess_addresses_are_counted() {
        let mixed = r#"[{"addresses":[{"ip":"10.0.0.1"},{"ip":"fd00::1"},{"ip":"no"}],
            "notReadyAddresses":[{"ip":"10.0.0.2"}]}]"#;
        let decision = decide(&endpoints("", mixed), Vec::new(), 100);
        let found: Vec<_> = decision
            .changes
            .create
            .iter()
            .map(|slice| (slice.address_type.as_str(), slice.endpoints.len()))
            .collect();
        assert_eq!((found, decision.invalid, decision.skipped), (vec![("IPv4", 2), ("IPv6", 1)], 1, 1));
        let decision = decide(&endpoints("", mixed), Vec::new(), 1);
        assert_eq!((counts(&decision), decision.invalid, decision.skipped), ((1, 0, 0), 0, 3));
    }

    #[test]
    fn slices_are_replaced_when_ports_change_and_deleted_with_the_addresses() {
        let existing = written(decide(&endpoints("", ONE), Vec::new(), 100));
        let other = ONE.replace("80", "81");
        assert_eq!(counts(&decide(&endpoints("", &other), existing.clone(), 100)), (0, 1, 0));
        assert_eq!(counts(&decide(&endpoints("", "[]"), existing, 100)), (0, 0, 1));
    }

    #[test]
    fn some_endpoints_are_never_mirrored() {
        assert!(may_mirror(&endpoints("", ONE)));
        let skipped = r#"{"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}}}"#;
        let leader = r#"{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"x"}}}"#;
        for json in [skipped, leader] {
            assert!(!may_mirror(&Object::from_json(json.as_bytes()).unwrap()), "{json}");
        }
    }
}
