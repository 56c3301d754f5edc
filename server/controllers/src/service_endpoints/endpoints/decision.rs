//! Decides the Endpoints of a Service (`Controller.syncService` of `pkg/controller/endpoint`). Pure.

use std::collections::BTreeMap;

use portico_machinery::{GroupVersion, Object};

use crate::service_endpoints::pod::Pod;
use crate::service_endpoints::service::{HEADLESS_LABEL, Service};
use crate::service_endpoints::slice::TargetRef;
use crate::service_endpoints::subsets::{Address, Subset, SubsetPort, are_equal, repack};
use crate::service_endpoints::trigger_times;

/// Label of Endpoints that this controller manages.
const MANAGED_BY_LABEL: &str = "endpoints.kubernetes.io/managed-by";
/// Value of that label.
const MANAGER: &str = "endpoint-controller";
/// Annotation of Endpoints that do not contain all addresses.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// Maximum number of addresses in Endpoints.
const CAPACITY: usize = 1000;

/// Returns the Endpoints to write; `None` if the current ones are up to date. `time` is the time of the causing change.
#[must_use]
pub fn decide(
    service: &Service,
    pods: &[Pod],
    current: Option<&Object>,
    time: Option<&str>,
) -> Option<Object> {
    let subsets = repack(&subsets_of(service, pods));
    if current.is_some_and(|current| is_up_to_date(service, &subsets, current)) {
        return None;
    }
    let mut desired = current.cloned().unwrap_or_else(|| {
        let mut endpoints = Object::new(&GroupVersion::new("", "v1").kind("Endpoints"));
        endpoints.set(&["metadata", "name"], &service.metadata.name);
        endpoints.set(&["metadata", "namespace"], &service.metadata.namespace);
        endpoints
    });
    let (subsets, is_truncated) = truncate(subsets);
    desired.set(&["subsets"], subsets);
    desired.set(&["metadata", "labels"], labels_of(service));
    annotate(&mut desired, trigger_times::ANNOTATION, time);
    annotate(&mut desired, OVER_CAPACITY, is_truncated.then_some("truncated"));
    Some(desired)
}

fn annotate(endpoints: &mut Object, key: &str, value: Option<&str>) {
    let path = ["metadata", "annotations", key];
    match value {
        Some(value) => endpoints.set(&path, value),
        None => {
            endpoints.remove(&path);
        }
    }
}

fn labels_of(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone();
    match service.is_headless() {
        true => labels.insert(HEADLESS_LABEL.to_owned(), String::new()),
        false => labels.remove(HEADLESS_LABEL),
    };
    labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
    labels
}

fn is_up_to_date(service: &Service, subsets: &[Subset], current: &Object) -> bool {
    let current_subsets: Vec<Subset> = current.decode(&["subsets"]).unwrap_or_default();
    let addresses = |subset: &Subset| subset.addresses.len() + subset.not_ready_addresses.len();
    let is_within_capacity = current_subsets.iter().map(addresses).sum::<usize>() <= CAPACITY;
    is_within_capacity
        && current.annotation(OVER_CAPACITY).is_none()
        && has_labels_of(service, &current.labels())
        && are_equal(&current_subsets, subsets)
}

/// Compares labels without the label of headless Services (`labelsCorrectForEndpoints`).
fn has_labels_of(service: &Service, labels: &BTreeMap<String, String>) -> bool {
    let is_managed_label = |key: &String| key == HEADLESS_LABEL || key == MANAGED_BY_LABEL;
    let of_service = &service.metadata.labels;
    let mut others = labels.iter().filter(|(key, _)| !is_managed_label(key));
    labels.get(MANAGED_BY_LABEL).is_some_and(|manager| manager == MANAGER)
        && of_service.len() == others.clone().count()
        && others.all(|(key, value)| of_service.get(key) == Some(value))
}

fn subsets_of(service: &Service, pods: &[Pod]) -> Vec<Subset> {
    let all = service.spec.publish_not_ready_addresses;
    let mut subsets = Vec::new();
    for pod in pods.iter().filter(|pod| pod.belongs_in_endpoints(all)) {
        let Some(address) = address_of(service, pod) else { continue };
        let found = service.spec.ports.iter().filter_map(|port| {
            Some(SubsetPort {
                name: port.name.clone(),
                port: pod.find_port(port)?,
                protocol: port.protocol.clone(),
                app_protocol: port.app_protocol.clone(),
            })
        });
        let mut ports: Vec<Vec<SubsetPort>> = found.map(|port| vec![port]).collect();
        if service.may_lack_ports() {
            ports.push(Vec::new());
        }
        let is_ready = all || pod.is_ready();
        let subset = |ports| {
            let list = vec![address.clone()];
            let (addresses, not_ready_addresses) = if is_ready { (list, vec![]) } else { (vec![], list) };
            Subset { addresses, not_ready_addresses, ports }
        };
        subsets.extend(ports.into_iter().map(subset));
    }
    subsets
}

/// Returns the address of a pod; `None` without an address of the family (`podToEndpointAddressForService`).
fn address_of(service: &Service, pod: &Pod) -> Option<Address> {
    let ip = pod.addresses(service.wants_v6(&pod.status.pod_ip)).next()?;
    let metadata = &pod.metadata;
    Some(Address {
        ip: ip.to_string(),
        hostname: pod.hostname_for(service).unwrap_or_default().to_owned(),
        node_name: Some(pod.spec.node_name.clone()).filter(|node| !node.is_empty()),
        target_ref: Some(TargetRef {
            kind: "Pod".to_owned(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            ..TargetRef::default()
        }),
    })
}

/// Limits the addresses to the capacity, ready ones first, in proportion to the subsets. Returns true if addresses were removed
/// (`truncateEndpoints`).
fn truncate(mut subsets: Vec<Subset>) -> (Vec<Subset>, bool) {
    let ready: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    let not_ready: usize = subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
    if ready + not_ready <= CAPACITY {
        return (subsets, false);
    }
    let too_many_ready = ready > CAPACITY;
    let (capacity, total) = if too_many_ready { (CAPACITY, ready) } else { (CAPACITY - ready, not_ready) };
    let mut remaining = capacity;
    for subset in &mut subsets {
        let list = if too_many_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        list.truncate((list.len() * capacity).div_ceil(total).min(remaining));
        remaining -= list.len();
        if too_many_ready {
            subset.not_ready_addresses.clear();
        }
    }
    (subsets, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: &str) -> Service {
        let json = format!(
            r#"{{"metadata":{{"name":"s","namespace":"n","labels":{{"app":"x"}}}},
            "spec":{{"clusterIP":"10.0.0.1","ipFamilies":["IPv4"],"selector":{{"a":"b"}}{spec}}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    const HTTP: &str = r#","ports":[{"name":"http","protocol":"TCP","targetPort":80}]"#;

    fn pods(count: usize, ready: &str) -> Vec<Pod> {
        let pod = |at: usize| {
            let ip = format!("10.1.{}.{}", at / 256, at % 256);
            let json = format!(
                r#"{{"metadata":{{"name":"p{at}","namespace":"n","uid":"u{at}"}},
                "status":{{"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}},{{"ip":"fd00::1"}}],
                "conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
            );
            serde_json::from_str(&json).unwrap()
        };
        (0..count).map(pod).collect()
    }

    fn subsets(endpoints: &Object) -> String {
        endpoints.at(&["subsets"]).json()
    }

    #[test]
    fn pods_are_listed_by_readiness_and_written_once() {
        let service = service(HTTP);
        let result = decide(&service, &pods(1, "True"), None, Some("t")).unwrap();
        assert_eq!(
            subsets(&result),
            r#"[{"addresses":[{"ip":"10.1.0.0","targetRef":{"kind":"Pod","namespace":"n","name":"p0","uid":"u0"}}],"ports":[{"name":"http","port":80,"protocol":"TCP"}]}]"#
        );
        assert_eq!(result.annotation(trigger_times::ANNOTATION), Some("t"));
        assert_eq!(decide(&service, &pods(1, "True"), Some(&result), None), None);
        let waiting = decide(&service, &pods(1, "False"), Some(&result), None).unwrap();
        assert!(subsets(&waiting).starts_with(r#"[{"notReadyAddresses""#));
        assert_eq!(waiting.annotation(trigger_times::ANNOTATION), None);
        let empty = decide(&service, &[], None, None).unwrap();
        assert_eq!(subsets(&empty), "[]");
        assert_eq!(decide(&service, &[], Some(&empty), None), None);
    }

    #[test]
    fn endpoints_have_the_first_family_and_the_labels_of_the_service() {
        let headless: Service = serde_json::from_str(
            r#"{"metadata":{"name":"s","namespace":"n"},"spec":{"clusterIP":"None","ipFamilies":["IPv6"],"selector":{"a":"b"}}}"#,
        )
        .unwrap();
        let result = decide(&headless, &pods(1, "True"), None, None).unwrap();
        assert!(subsets(&result).starts_with(r#"[{"addresses":[{"ip":"fd00::1""#));
        assert_eq!(result.label(HEADLESS_LABEL), Some(""));
        assert_eq!(result.label(MANAGED_BY_LABEL), Some(MANAGER));
    }

    #[test]
    fn more_than_a_thousand_addresses_are_cut_and_annotated() {
        let service = service(HTTP);
        let count = |endpoints: &Object, field: &str| {
            endpoints.at(&["subsets"]).items().map(|subset| subset.field(field).len()).sum::<usize>()
        };
        let result = decide(&service, &pods(1001, "True"), None, None).unwrap();
        assert_eq!(
            (count(&result, "addresses"), result.annotation(OVER_CAPACITY)),
            (1000, Some("truncated"))
        );
        let mut mixed = pods(1200, "False");
        mixed[..900].iter_mut().for_each(|pod| pod.status.conditions[0].status = "True".to_owned());
        let result = decide(&service, &mixed, Some(&result), None).unwrap();
        assert_eq!((count(&result, "addresses"), count(&result, "notReadyAddresses")), (900, 100));
        let fewer = decide(&service, &mixed[..10], Some(&result), None).unwrap();
        assert_eq!(fewer.annotation(OVER_CAPACITY), None);
    }
}
