//! Tests of the decisions about a Service, its port and endpoints that upstream's `AvailableConditionController.sync` makes
//! without the network.

use portico_machinery::resolve::{AffectedApiServices, RoutingFacts};

use super::*;

fn decided(objects: &[(FactSource, Object)], mode: ResolveMode) -> Option<Decision> {
    let (mut facts, mut touched) = (RoutingFacts::default(), AffectedApiServices::new());
    objects.iter().for_each(|(watched, object)| facts.put(*watched, object, &mut touched));
    decide_remote(facts.api_service("v1.g").unwrap(), facts.services(), mode)
}

fn reason(service: Option<&str>, slices: Option<&str>) -> String {
    let mut objects = vec![(FactSource::ApiServices, api_service("g", SERVICE))];
    objects.extend(service.map(|spec| (FactSource::Services, super::service(spec))));
    objects.extend(slices.map(|rest| (FactSource::EndpointSlices, slice(rest))));
    match decided(&objects, ResolveMode::ClusterIp) {
        Some(Decision::Final(verdict)) => {
            assert_eq!(verdict.status, ConditionStatus::False);
            format!("{}: {}", verdict.reason, verdict.message)
        }
        Some(Decision::Probe(plan)) => format!("probe {}", plan.url()),
        None => "not mine".to_owned(),
    }
}

const PORTS: &str = r#""clusterIP":"10.0.0.9","ports":[{"name":"https","port":443}]"#;
const READY: &str = r#""ports":[{"name":"https","port":8443}],"endpoints":[{"addresses":["10.1.0.1"]}]"#;

#[test]
fn missing_objects_are_reported_before_a_probe() {
    let other_port = r#""clusterIP":"10.0.0.9","ports":[{"name":"https","port":80}]"#;
    let other_name = r#""ports":[{"name":"other","port":8443}],"endpoints":[{"addresses":["10.1.0.1"]}]"#;
    let unready = r#""ports":[{"name":"https","port":8443}],"endpoints":[{"addresses":["10.1.0.1"],"conditions":{"ready":false}}]"#;
    let missing = r#"MissingEndpoints: endpointslices for service/svc in "ns" have no addresses with port name "https""#;
    let rows = [
        (None, None, r#"ServiceNotFound: service/svc in "ns" is not present"#),
        (
            Some(other_port),
            Some(READY),
            r#"ServicePortError: service/svc in "ns" is not listening on port 443"#,
        ),
        (Some(PORTS), None, r#"EndpointsNotFound: cannot find endpointslices for service/svc in "ns""#),
        (Some(PORTS), Some(r#""endpoints":[]"#), missing),
        (Some(PORTS), Some(other_name), missing),
        (Some(PORTS), Some(unready), missing),
        (Some(PORTS), Some(READY), "probe https://10.0.0.9:443/apis/g/v1"),
    ];
    for (service, slices, want) in rows {
        assert_eq!(reason(service, slices), want);
    }
}

#[test]
fn only_cluster_ip_services_need_slices() {
    for kind in ["NodePort", "LoadBalancer"] {
        let spec = format!(r#""type":"{kind}",{PORTS}"#);
        assert_eq!(reason(Some(&spec), None), "probe https://10.0.0.9:443/apis/g/v1", "{kind}");
    }
    let external = r#""type":"ExternalName","externalName":"backend.example""#;
    assert_eq!(reason(Some(external), None), "probe https://backend.example:443/apis/g/v1");
}

#[test]
fn an_error_of_the_resolver_is_a_failed_check() {
    let headless = r#""clusterIP":"None","ports":[{"name":"https","port":443}]"#;
    let reported = reason(Some(headless), Some(READY));
    assert!(reported.starts_with(r#"FailedDiscoveryCheck: service/svc in "ns" is headless"#), "{reported}");
}

#[test]
fn each_controller_ignores_the_objects_of_the_other() {
    let local = [(FactSource::ApiServices, api_service("g", ""))];
    assert_eq!(decided(&local, ResolveMode::ClusterIp), None);
    let (mut facts, mut touched) = (RoutingFacts::default(), AffectedApiServices::new());
    facts.put(FactSource::ApiServices, &api_service("g", SERVICE), &mut touched);
    assert_eq!(decide_local(facts.api_service("v1.g").unwrap()), None);
    facts.put(FactSource::ApiServices, &api_service("g", ""), &mut touched);
    let verdict = decide_local(facts.api_service("v1.g").unwrap()).unwrap();
    assert_eq!(
        (&*verdict.reason, verdict.message.as_str()),
        ("Local", "Local APIServices are always available")
    );
}

#[test]
fn the_legacy_group_is_probed_under_api() {
    let mut legacy = api_service("g", SERVICE);
    legacy.set(&["spec", "group"], "");
    let objects = [
        (FactSource::ApiServices, legacy),
        (FactSource::Services, service(r#""type":"ExternalName","externalName":"x""#)),
    ];
    let Some(Decision::Probe(plan)) = decided(&objects, ResolveMode::ClusterIp) else { panic!("not probed") };
    assert_eq!(plan.path, "/api/v1");
}

#[test]
fn messages_name_the_service_of_several_targets_and_urls_never_get_masters() {
    let two = r#""ports":[{"name":"https","port":8443}],"endpoints":[{"addresses":["10.1.0.1"]},{"addresses":["10.1.0.2"]}]"#;
    let objects = [
        (FactSource::ApiServices, api_service("g", SERVICE)),
        (FactSource::Services, service(PORTS)),
        (FactSource::EndpointSlices, slice(two)),
    ];
    let Some(Decision::Probe(plan)) = decided(&objects, ResolveMode::Endpoints) else { panic!("not probed") };
    assert_eq!(
        (plan.targets.len(), plan.display_address.as_str(), plan.as_masters),
        (2, "svc.ns.svc:443", true)
    );

    let mut by_url = api_service("g", SERVICE);
    by_url.set(&["metadata", "annotations", "portico.dev/backend-urls"], "https://a:1");
    let Some(Decision::Probe(plan)) = decided(&[(FactSource::ApiServices, by_url)], ResolveMode::ClusterIp)
    else {
        panic!("not probed")
    };
    assert_eq!((plan.display_address.as_str(), plan.as_masters), ("a:1", false));
}

#[test]
fn a_failed_probe_is_reported_unless_a_facade_reaches_the_backend() {
    let failure = ProbeFailure {
        stage: ProbeStage::Status,
        timed_out: false,
        message: "bad status from https://10.0.0.1:443/apis/g/v1: 403".into(),
    };
    let verdict = decide_probed(&plan(), &Err(failure.clone()), false);
    assert_eq!(
        verdict.message,
        "failing or missing response from https://10.0.0.1:443/apis/g/v1: bad status from https://10.0.0.1:443/apis/g/v1: 403"
    );
    assert_eq!((verdict.status, &*verdict.reason), (ConditionStatus::False, "FailedDiscoveryCheck"));
    let answered = decide_probed(&plan(), &Err(failure), true);
    assert_eq!(answered, verdict, "an error response overrides the reports of facades");
    let unreached = ProbeFailure { stage: ProbeStage::Dial, timed_out: false, message: "refused".into() };
    for verdict in [decide_probed(&plan(), &Ok(()), false), decide_probed(&plan(), &Err(unreached), true)] {
        assert_eq!((verdict.status, &*verdict.reason), (ConditionStatus::True, "Passed"));
        assert_eq!(verdict.message, "all checks passed");
    }
}
