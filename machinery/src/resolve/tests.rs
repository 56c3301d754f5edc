//! Results of `ResolveEndpoint`, `ResolveCluster` and the availability controller, and the referrers that index updates affect.

use std::sync::Arc;

use super::api_service::SharedValues;
use super::*;
use crate::object::Object;
use crate::route::Trust;

fn reference(port: u16) -> ServiceReference {
    ServiceReference { namespace: "ns".into(), name: "svc".into(), port }
}

fn service(spec: &str) -> ServiceFacts {
    ServiceFacts::of(&Object::from_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap())
}

fn slice(name: &str, rest: &str) -> SliceFacts {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","labels":{{"kubernetes.io/service-name":"svc"}}}},{rest}}}"#
    );
    let (owner, facts) = SliceFacts::of(&Object::from_json(json.as_bytes()).unwrap()).unwrap();
    assert_eq!(owner, "svc");
    facts
}

fn v4(name: &str, addresses: &[&str]) -> SliceFacts {
    ready(name, "IPv4", addresses)
}

fn ready(name: &str, family: &str, addresses: &[&str]) -> SliceFacts {
    let endpoints: Vec<_> =
        addresses.iter().map(|a| format!(r#"{{"addresses":["{a}","9.9.9.9"]}}"#)).collect();
    slice(
        name,
        &format!(
            r#""addressType":"{family}","ports":[{{"name":"https","port":8443}}],"endpoints":[{}]"#,
            endpoints.join(",")
        ),
    )
}

const PORTS: &str = r#""ports":[{"name":"https","port":443}]"#;

fn outcome_of(
    mode: ResolveMode,
    service: Option<&ServiceFacts>,
    slices: &[&SliceFacts],
    port: u16,
) -> String {
    match resolve(mode, service, slices, &reference(port)) {
        Ok(targets) => targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Err(error) => error.reason,
    }
}

#[test]
fn both_resolvers_match_upstream_except_for_external_names() {
    let one = v4("a", &["10.1.0.1", "10.1.0.2"]);
    let rows = [
        (r#""clusterIP":"10.0.0.1""#, 443, "10.0.0.1:443", "10.1.0.1:8443 10.1.0.2:8443"),
        (r#""type":"NodePort","clusterIP":"10.0.0.1""#, 443, "10.0.0.1:443", "10.1.0.1:8443 10.1.0.2:8443"),
        (
            r#""type":"LoadBalancer","clusterIP":"fd00::1""#,
            443,
            "[fd00::1]:443",
            "10.1.0.1:8443 10.1.0.2:8443",
        ),
        (r#""clusterIP":"10.0.0.1""#, 8443, "ServicePortError", "ServicePortError"),
        (r#""clusterIP":"None""#, 443, "FailedDiscoveryCheck", "10.1.0.1:8443 10.1.0.2:8443"),
        (r#""clusterIP":"None""#, 8443, "FailedDiscoveryCheck", "ServicePortError"),
        (r#""type":"ExternalName","externalName":"x.example""#, 6443, "x.example:6443", "x.example:6443"),
        (r#""type":"Odd","clusterIP":"10.0.0.1""#, 443, "FailedDiscoveryCheck", "FailedDiscoveryCheck"),
        (r#""type":"ClusterIP""#, 443, "10.1.0.1:8443 10.1.0.2:8443", "10.1.0.1:8443 10.1.0.2:8443"),
    ];
    for (spec, port, by_cluster_ip, by_endpoints) in rows {
        let service = service(&format!("{{{spec},{PORTS}}}"));
        assert_eq!(
            outcome_of(ResolveMode::ClusterIp, Some(&service), &[&one], port),
            by_cluster_ip,
            "{spec}"
        );
        assert_eq!(outcome_of(ResolveMode::Endpoints, Some(&service), &[&one], port), by_endpoints, "{spec}");
    }
    for mode in [ResolveMode::ClusterIp, ResolveMode::Endpoints] {
        assert_eq!(outcome_of(mode, None, &[], 443), "ServiceNotFound");
    }
}

#[test]
fn errors_name_the_missing_part_of_slices() {
    let service = service(&format!(r#"{{"clusterIP":"10.0.0.1",{PORTS}}}"#));
    assert_eq!(outcome_of(ResolveMode::Endpoints, Some(&service), &[], 443), "EndpointsNotFound");
    let port = r#""ports":[{"name":"https","port":1}]"#;
    for rest in [
        r#""addressType":"IPv4""#.to_owned(),
        format!(r#"{port},"endpoints":[]"#),
        format!(r#"{port},"endpoints":[{{"addresses":["10.1.1.1"],"conditions":{{"ready":false}}}}]"#),
        format!(r#"{port},"endpoints":[{{"addresses":[]}}]"#),
        r#""ports":[{"name":"other","port":1}],"endpoints":[{"addresses":["10.1.1.1"]}]"#.to_owned(),
        r#""ports":[{"port":1}],"endpoints":[{"addresses":["10.1.1.1"]}]"#.to_owned(),
        r#""ports":[{"name":"https"}],"endpoints":[{"addresses":["10.1.1.1"]}]"#.to_owned(),
    ] {
        let slice = slice("a", &rest);
        let error = resolve(ResolveMode::Endpoints, Some(&service), &[&slice], &reference(443)).unwrap_err();
        assert_eq!(error.reason, "MissingEndpoints", "{rest}");
        assert_eq!(
            error.message,
            r#"endpointslices for service/svc in "ns" have no addresses with port name "https""#
        );
    }
}

#[test]
fn the_empty_port_name_matches_only_a_name_that_is_set() {
    let service = service(r#"{"clusterIP":"10.0.0.1","ports":[{"port":443}]}"#);
    let ends = r#""endpoints":[{"addresses":["10.1.1.1"]}]"#;
    let unset = slice("a", &format!(r#""ports":[{{"port":1}}],{ends}"#));
    let set = slice("b", &format!(r#""ports":[{{"name":"","port":2}}],{ends}"#));
    assert_eq!(outcome_of(ResolveMode::Endpoints, Some(&service), &[&unset], 443), "MissingEndpoints");
    assert_eq!(outcome_of(ResolveMode::Endpoints, Some(&service), &[&unset, &set], 443), "10.1.1.1:2");
}

#[test]
fn the_first_family_wins_and_the_order_is_deterministic() {
    let service = service(&format!(r#"{{"clusterIP":"None","ipFamilies":["IPv6","IPv4"],{PORTS}}}"#));
    let (four, six_b) = (v4("a", &["10.1.0.1"]), ready("b", "IPv6", &["fd00::b"]));
    let six_a = ready("a6", "IPv6", &["fd00::a", "fd00::b"]);
    for slices in [[&four, &six_b, &six_a], [&six_a, &four, &six_b]] {
        assert_eq!(
            outcome_of(ResolveMode::Endpoints, Some(&service), &slices, 443),
            "[fd00::a]:8443 [fd00::b]:8443"
        );
    }
    let empty = ready("b", "IPv6", &[]);
    assert_eq!(outcome_of(ResolveMode::Endpoints, Some(&service), &[&empty, &four], 443), "10.1.0.1:8443");
}

#[test]
fn an_event_affects_only_the_referrers_of_its_service() {
    let mut index = ServiceIndex::default();
    let (key, other) = (ServiceKey::new("ns", "svc"), ServiceKey::new("ns", "other"));
    let (a, b): (Arc<str>, Arc<str>) = ("v1.a".into(), "v1.b".into());
    index.set_reference(&a, None, Some(key.clone()));
    index.set_reference(&b, None, Some(other));
    let facts = service(&format!("{{{PORTS}}}"));
    assert_eq!(index.set_service(key.clone(), Some(facts.clone())).join(" "), "v1.a");
    assert_eq!(index.set_service(key.clone(), Some(facts)).join(" "), "", "nothing changed");
    let slice_key = ServiceKey::new("ns", "s1");
    let mut set_slice = |owner: &str| {
        let facts = (!owner.is_empty()).then(|| (owner.to_owned(), v4("s1", &["10.0.0.1"])));
        index.set_slice(slice_key.clone(), facts).join(" ")
    };
    for (owner, touched) in [("svc", "v1.a"), ("svc", ""), ("other", "v1.a v1.b"), ("", "v1.b"), ("", "")] {
        assert_eq!(set_slice(owner), touched, "{owner}");
    }
    assert!(index.slices(&key).is_empty());
    index.set_reference(&a, Some(key.clone()), None);
    assert_eq!(index.set_service(key, None).join(" "), "");
}

#[test]
fn api_services_are_parsed_to_facts_and_share_bundles() {
    let json = |extra: &str| {
        format!(
            r#"{{"metadata":{{"name":"v1.g","uid":"u","resourceVersion":"7"{extra}}},"spec":{{"group":"g","version":"v1","groupPriorityMinimum":10,"versionPriority":5,"caBundle":"QUJD","service":{{"namespace":"ns","name":"svc"}}}},"status":{{"conditions":[{{"type":"Available","status":"True","reason":"Passed"}}]}}}}"#
        )
    };
    let mut alike = SharedValues::default();
    let mut read = |text: &str| ApiServiceFacts::of(&Object::from_json(text.as_bytes()).unwrap(), &mut alike);
    let (one, two) = (read(&json("")), read(&json(r#","labels":{"look":"again"}"#)));
    assert!(one.is_available() && one.revision == 7 && one.fingerprint != two.fingerprint);
    let (one, two) = (one.backend.unwrap(), two.backend.unwrap());
    assert!(Arc::ptr_eq(&one, &two), "they say the same of it");
    assert_eq!((one.server_name.as_str(), one.service.port), ("svc.ns.svc", 443));
    let hash = "b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78";
    assert_eq!(one.trust(), Trust::Bundle(hash.into()));
    let urls = r#","annotations":{"portico.dev/backend-urls":"https://a:1","portico.dev/backend-protocol":"h2","portico.dev/backend-server-name":"x"}"#;
    let three = read(&json(urls)).backend.unwrap();
    assert!(Arc::ptr_eq(one.bundle.as_ref().unwrap(), three.bundle.as_ref().unwrap()));
    let urls = three.urls.as_ref().unwrap().as_ref().unwrap();
    assert_eq!((three.server_name.as_str(), three.http2, urls.len()), ("x", true, 1));
}

#[test]
fn a_relist_removes_missing_objects() {
    let object = |name: &str| {
        let json = format!(r#"{{"metadata":{{"namespace":"ns","name":"{name}"}},"spec":{{{PORTS}}}}}"#);
        Object::from_json(json.as_bytes()).unwrap()
    };
    let (mut facts, mut touched) = (RoutingFacts::default(), AffectedApiServices::new());
    for name in ["a", "b"] {
        facts.put(FactSource::Services, &object(name), &mut touched);
    }
    facts.replace(FactSource::Services, [object("b"), object("c")].into_iter(), &mut touched);
    let mut names: Vec<_> = facts.services().service_keys().map(|k| k.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "c"]);
}
