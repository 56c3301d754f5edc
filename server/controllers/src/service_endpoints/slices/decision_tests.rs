//! Tests of the decisions about slices.

use super::*;
use portico_machinery::Object;

fn service(spec: &str) -> Service {
    let json = format!(
        r#"{{"metadata":{{"name":"s","namespace":"n","uid":"u","labels":{{"app":"x"}}}},
        "spec":{{"clusterIP":"10.0.0.1","ipFamilies":["IPv4"],"selector":{{"a":"b"}}{spec}}}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

const HTTP: &str = r#","ports":[{"name":"http","protocol":"TCP","targetPort":80}]"#;

fn pod(at: usize) -> Pod {
    let json = format!(
        r#"{{"metadata":{{"name":"p{at}","namespace":"n","uid":"u{at}"}},"spec":{{"nodeName":"node"}},
        "status":{{"podIP":"10.1.{}.{}","podIPs":[{{"ip":"10.1.{}.{}"}}],
        "conditions":[{{"type":"Ready","status":"True"}}]}}}}"#,
        at / 256,
        at % 256,
        at / 256,
        at % 256
    );
    serde_json::from_str(&json).unwrap()
}

fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(pod).collect()
}

fn decide_on(service: &Service, pods: &[Pod], existing: Vec<Slice>, max: usize) -> SliceDecision {
    let nodes = BTreeMap::from([("node".to_owned(), Some("z".to_owned()))]);
    decide(SliceInput { service, pods, existing, nodes: &nodes, shares: None, max })
}

/// Returns the slices after the writes of a decision.
fn written(decision: SliceDecision) -> Vec<Slice> {
    let with_name = |(at, mut slice): (usize, Slice)| {
        if slice.name.is_empty() {
            slice.name = format!("s-{at}");
        }
        Slice::of_object(Object::from_json(&slice.into_object().to_json()).unwrap())
    };
    let SliceChanges { create, update, .. } = decision.changes;
    create.into_iter().chain(update).enumerate().map(with_name).collect()
}

fn counts(decision: &SliceDecision) -> (usize, usize, usize) {
    let changes = &decision.changes;
    (changes.create.len(), changes.update.len(), changes.delete.len())
}

#[test]
fn a_new_service_gets_a_slice_with_its_labels_ports_and_endpoints() {
    let decision = decide_on(&service(HTTP), &pods(1), Vec::new(), 100);
    assert_eq!(counts(&decision), (1, 0, 0));
    let object = decision.changes.create[0].clone().into_object();
    let json = String::from_utf8(object.to_json()).unwrap();
    for part in [
        r#""generateName":"s-""#,
        r#""ownerReferences":[{"apiVersion":"v1","kind":"Service","name":"s","uid":"u","controller":true,"blockOwnerDeletion":true}]"#,
        r#""labels":{"app":"x","endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":"s"}"#,
        r#""conditions":{"ready":true,"serving":true,"terminating":false}"#,
        r#""targetRef":{"kind":"Pod","namespace":"n","name":"p0","uid":"u0"},"nodeName":"node","zone":"z""#,
        r#""ports":[{"name":"http","protocol":"TCP","port":80}]"#,
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
}

#[test]
fn slices_that_are_up_to_date_are_not_written_again() {
    let service = service(HTTP);
    for count in [0, 1, 5] {
        let existing = written(decide_on(&service, &pods(count), Vec::new(), 3));
        let repeated = decide_on(&service, &pods(count), existing, 3);
        assert!(repeated.changes.is_empty(), "{count}: {:?}", repeated.changes);
    }
}

#[test]
fn endpoints_are_packed_into_few_slices_with_few_writes() {
    let service = service(HTTP);
    let existing = written(decide_on(&service, &pods(5), Vec::new(), 3));
    assert_eq!(existing.iter().map(|slice| slice.endpoints.len()).collect::<Vec<_>>(), [3, 2]);
    // A further endpoint fits into the second slice.
    assert_eq!(counts(&decide_on(&service, &pods(6), existing.clone(), 3)), (0, 1, 0));
    // Two further endpoints need another slice: neither slice has room for both.
    assert_eq!(counts(&decide_on(&service, &pods(7), existing.clone(), 3)), (1, 0, 0));
    // Removing an endpoint takes one write.
    assert_eq!(counts(&decide_on(&service, &pods(5)[1..], existing.clone(), 3)), (0, 1, 0));
    // Without endpoints, one slice is deleted and the other becomes the empty slice.
    assert_eq!(counts(&decide_on(&service, &[], existing, 3)), (0, 1, 1));
}

#[test]
fn changed_labels_and_conditions_are_written_in_place() {
    let service = service(HTTP);
    let existing = written(decide_on(&service, &pods(1), Vec::new(), 3));
    let mut other = service.clone();
    other.metadata.labels.insert("more".to_owned(), "y".to_owned());
    let relabelled = decide_on(&other, &pods(1), existing.clone(), 3);
    assert_eq!(counts(&relabelled), (0, 1, 0));
    assert_eq!(relabelled.changes.update[0].labels.get("more").map(String::as_str), Some("y"));
    let mut waiting = pods(1);
    waiting[0].status.conditions[0].status = "False".to_owned();
    let decision = decide_on(&service, &waiting, existing, 3);
    assert_eq!(counts(&decision), (0, 1, 0));
    assert_eq!(decision.changes.update[0].endpoints[0].conditions.ready, Some(false));
}

#[test]
fn terminating_pods_serve_and_are_not_ready_unless_the_service_publishes_all() {
    let mut terminating = pods(1);
    terminating[0].metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    let conditions = |spec: &str| {
        let decision = decide_on(&service(spec), &terminating, Vec::new(), 3);
        let found = decision.changes.create[0].endpoints[0].conditions;
        (found.ready, found.serving, found.terminating)
    };
    assert_eq!(conditions(HTTP), (Some(false), Some(true), Some(true)));
    let all = format!(r#"{HTTP},"publishNotReadyAddresses":true"#);
    assert_eq!(conditions(&all), (Some(true), Some(true), Some(true)));
}

#[test]
fn pods_with_different_ports_are_in_different_slices() {
    let service = service(r#","ports":[{"name":"http","protocol":"TCP","targetPort":"web"}]"#);
    let with_port = |at: usize, number: u16| {
        let mut pod = pod(at);
        let container =
            format!(r#"{{"ports":[{{"name":"web","protocol":"TCP","containerPort":{number}}}]}}"#);
        pod.spec.containers = vec![serde_json::from_str(&container).unwrap()];
        pod
    };
    let mixed = [with_port(0, 80), with_port(1, 81), with_port(2, 80), pod(3)];
    let decision = decide_on(&service, &mixed, Vec::new(), 100);
    let mut found: Vec<_> = decision
        .changes
        .create
        .iter()
        .map(|slice| (slice.ports.first().and_then(|port| port.port), slice.endpoints.len()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(None, 1), (Some(80), 2), (Some(81), 1)]);
}

#[test]
fn slices_of_another_owner_or_family_are_deleted() {
    let service = service(HTTP);
    let mut stale = written(decide_on(&service, &pods(1), Vec::new(), 3));
    stale[0].object.set(&["metadata", "ownerReferences"], Vec::<String>::new());
    assert_eq!(counts(&decide_on(&service, &pods(1), stale, 3)), (1, 0, 1));
    let mut foreign = written(decide_on(&service, &pods(1), Vec::new(), 3));
    foreign[0].address_type = "IPv6".to_owned();
    assert_eq!(counts(&decide_on(&service, &pods(1), foreign, 3)), (1, 0, 1));
}

#[test]
fn pods_on_missing_nodes_are_omitted_until_the_nodes_exist() {
    let mut lost = pods(2);
    lost[0].spec.node_name = "gone".to_owned();
    lost[1].spec.node_name = String::new();
    let decision = decide_on(&service(HTTP), &lost, Vec::new(), 3);
    assert_eq!(decision.missing_nodes.iter().collect::<Vec<_>>(), ["gone"]);
    let endpoints = &decision.changes.create[0].endpoints;
    assert!(endpoints.len() == 1 && endpoints[0].node_name.is_none(), "{endpoints:?}");
    let all = format!(r#"{HTTP},"publishNotReadyAddresses":true"#);
    let published = decide_on(&service(&all), &lost, Vec::new(), 3);
    assert_eq!(published.changes.create[0].endpoints.len(), 2);
}

#[test]
fn ready_endpoints_get_hints_for_the_traffic_distribution() {
    let hints = |distribution: &str| {
        let spec = format!(r#"{HTTP},"trafficDistribution":"{distribution}""#);
        let decision = decide_on(&service(&spec), &pods(1), Vec::new(), 3);
        let hints = decision.changes.create[0].endpoints[0].hints.clone().unwrap_or_default();
        (hints.for_zones.len(), hints.for_nodes.len())
    };
    assert_eq!(hints("PreferClose"), (1, 0));
    assert_eq!(hints("PreferSameZone"), (1, 0));
    assert_eq!(hints("PreferSameNode"), (1, 1));
    assert_eq!(hints("Elsewhere"), (0, 0));
    // Hints are removed if the Service no longer requests them.
    let spec = format!(r#"{HTTP},"trafficDistribution":"PreferClose""#);
    let existing = written(decide_on(&service(&spec), &pods(2), Vec::new(), 3));
    let decision = decide_on(&service(HTTP), &pods(2), existing.clone(), 3);
    assert_eq!(counts(&decision), (0, 1, 0));
    assert!(decision.changes.update[0].endpoints.iter().all(|endpoint| endpoint.hints.is_none()));
    // Hints are added to slices that exist.
    assert!(decide_on(&service(&spec), &pods(2), existing, 3).changes.is_empty());
}

#[test]
fn a_service_that_is_being_deleted_gets_no_new_slices() {
    let mut going = service(HTTP);
    going.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    assert!(decide_on(&going, &pods(1), Vec::new(), 3).changes.is_empty());
}
