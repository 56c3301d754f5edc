//! Backends that stop, hang, misbehave and recover: the condition names the stage, other APIs are not affected.

use std::time::{Duration, Instant};

use portico_tests::objects::{API_SERVICES, api_service_with_urls, available_condition, remote_api_service};
use portico_tests::{Backend, Behavior, Portico, eventually};
use serde_json::json;

use crate::proxying::{register, routed, wait_for};

/// Triggers a probe by the control service.
pub async fn trigger_probe(portico: &Portico, backend: &Backend) {
    let patch = json!({"metadata": {"labels": {"looked": format!("{:?}", std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos())}}});
    portico.admin().merge(&format!("{API_SERVICES}/{}", backend.name()), &patch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_backend_is_reported_and_other_apis_work() {
    let mut dead = Backend::start("dead.example.com").await;
    let live = Backend::start("live.example.com").await;
    let portico = routed(&dead).await;
    register(&portico, &live).await;
    let admin = portico.admin();

    dead.stop().await;
    let refused = admin.get(&dead.path("/flunders")).await.status_body(503, "ServiceUnavailable");
    assert!(refused["message"].as_str().unwrap().len() > 10, "{refused}");
    trigger_probe(&portico, &dead).await;
    let (reason, message) = wait_for(&portico, &dead, "False").await;
    assert_eq!(reason, "FailedDiscoveryCheck");
    assert!(message.to_lowercase().contains("refused"), "the stage is named: {message}");
    let refused = admin.get(&dead.path("/flunders")).await.status_body(503, "ServiceUnavailable");
    assert!(refused.to_string().contains("FailedDiscoveryCheck"), "the 503 names the reason: {refused}");

    assert_eq!(admin.get(&live.path("/flunders")).await.status, 200);
    let groups = admin.get("/apis").await.text();
    assert!(groups.contains("live.example.com") && groups.contains("dead.example.com"));
    assert_eq!(admin.get(API_SERVICES).await.status, 200);

    dead.resume().await;
    let (reason, _) = wait_for(&portico, &dead, "True").await;
    assert_eq!(reason, "Passed", "the APIService recovers without a change");
    eventually("requests pass again", || async {
        let answer = admin.get(&dead.path("/flunders")).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_backend_is_noticed_without_requests() {
    let mut backend = Backend::start("noticed.example.com").await;
    let portico = routed(&backend).await;
    backend.stop().await;
    // Before the next periodic probe, which is at least 24 seconds later.
    let (reason, _) = wait_for(&portico, &backend, "False").await;
    assert_eq!(reason, "FailedDiscoveryCheck");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_named_by_its_stage() {
    let portico = Portico::start().await;
    for (group, mood, words) in [
        ("code.example.com", Behavior::Code(403), &["403"][..]),
        ("redirect.example.com", Behavior::Redirect, &["302"]),
        ("reset.example.com", Behavior::Reset, &["reset", "closed", "eof"]),
        ("drop.example.com", Behavior::Drop, &["closed", "eof", "reset", "ended"]),
    ] {
        let backend = Backend::start(group).await;
        backend.set_behavior(mood);
        portico.admin().post(API_SERVICES, &backend.api_service()).await;
        let (reason, message) = wait_for(&portico, &backend, "False").await;
        assert_eq!(reason, "FailedDiscoveryCheck", "{mood:?}");
        let message = message.to_lowercase();
        assert!(words.iter().any(|word| message.contains(word)), "{mood:?}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_named() {
    let backend = Backend::with_names("wrongname.example.com", &["other.default.svc"]).await;
    let portico = Portico::start().await;
    portico.admin().post(API_SERVICES, &backend.api_service()).await;
    let (reason, message) = wait_for(&portico, &backend, "False").await;
    assert_eq!(reason, "FailedDiscoveryCheck");
    assert!(message.contains("other.default.svc") && message.contains("backend.default.svc"), "{message}");
    portico.admin().get(&backend.path("/flunders")).await.status_body(503, "ServiceUnavailable");
    // The annotation contains the name to verify.
    let patch =
        json!({"metadata": {"annotations": {"portico.dev/backend-server-name": "other.default.svc"}}});
    portico.admin().merge(&format!("{API_SERVICES}/{}", backend.name()), &patch).await;
    wait_for(&portico, &backend, "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_ca_is_named() {
    let backend = Backend::start("rogue.example.com").await;
    let other = portico_tests::pki::Authority::new("somebody-else");
    let portico = Portico::start().await;
    let object = api_service_with_urls("rogue.example.com", &other.pem, &backend.url());
    portico.admin().post(API_SERVICES, &object).await;
    let (reason, message) = wait_for(&portico, &backend, "False").await;
    assert_eq!(reason, "FailedDiscoveryCheck");
    let message = message.to_lowercase();
    assert!(message.contains("certificate") || message.contains("unknown issuer"), "{message}");
    assert!(backend.requests().is_empty(), "no request is sent over an unverified connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_backends_are_found_in_time_and_delay_no_others() {
    let portico = Portico::start().await;
    let half_open = Backend::start("halfopen.example.com").await;
    half_open.set_behavior(Behavior::HalfOpen);
    let hanging = Backend::start("hanging.example.com").await;
    hanging.set_behavior(Behavior::Hang);
    for backend in [&half_open, &hanging] {
        portico.admin().post(API_SERVICES, &backend.api_service()).await;
    }
    let start = Instant::now();
    let live = Backend::start("live.example.com").await;
    register(&portico, &live).await;
    assert!(start.elapsed() < Duration::from_secs(4), "a hanging probe delayed another's");
    for backend in [&half_open, &hanging] {
        let (reason, message) = wait_for(&portico, backend, "False").await;
        assert_eq!(reason, "FailedDiscoveryCheck");
        let message = message.to_lowercase();
        assert!(
            ["timed out", "timeout", "deadline", "within"].iter().any(|w| message.contains(w)),
            "{message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_backend_stays_available() {
    let backend = Backend::start("slow.example.com").await;
    let portico = routed(&backend).await;
    backend.set_behavior(Behavior::Slow(Duration::from_millis(1500)));
    let answer = portico.admin().get(&backend.path("/flunders")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_in_the_middle_is_a_503() {
    let backend = Backend::start("lost.example.com").await;
    let portico = routed(&backend).await;
    backend.set_behavior(Behavior::Drop);
    let refused =
        portico.admin().get(&backend.path("/flunders")).await.status_body(503, "ServiceUnavailable");
    assert!(refused["message"].as_str().unwrap().contains("error trying to reach service"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_use_the_reachable_of_two_addresses() {
    let mut first = Backend::start("pair.example.com").await;
    let second = Backend::start("other.example.com").await;
    let portico = Portico::start().await;
    // Two CAs in one bundle, two addresses.
    let urls = format!("{},{}", first.url(), second.url());
    let object = api_service_with_urls("pair.example.com", &format!("{}{}", first.ca, second.ca), &urls);
    portico.admin().post(API_SERVICES, &object).await;
    wait_for(&portico, &first, "True").await;
    let admin = portico.admin();
    for _ in 0..4 {
        assert_eq!(admin.get(&first.path("/flunders")).await.status, 200);
    }
    assert!(!first.requests().is_empty() && !second.requests().is_empty(), "round robin");
    first.stop().await;
    for _ in 0..6 {
        let answer = admin.get(&first.path("/flunders")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_objects_are_the_reason_of_the_condition() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(API_SERVICES, &remote_api_service("way.example.com", "", 8443)).await;
    let reason = |wanted: &'static str| {
        let admin = admin.clone();
        eventually(wanted, move || {
            let admin = admin.clone();
            async move {
                let object = admin.get(&format!("{API_SERVICES}/v1.way.example.com")).await.json();
                let (_, reason, message) = available_condition(&object);
                if reason == wanted { Ok(message) } else { Err((reason, message)) }
            }
        })
    };
    assert!(reason("ServiceNotFound").await.contains("backend"));
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"kind": "Service", "metadata": {"name": "backend"}, "spec": {"ports": [{"port": 443, "name": "https"}]}});
    let created = admin.post(services, &service).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert!(reason("ServicePortError").await.contains("8443"));
    admin
        .merge(&format!("{API_SERVICES}/v1.way.example.com"), &json!({"spec": {"service": {"port": 443}}}))
        .await;
    reason("EndpointsNotFound").await;
    let slice = json!({"kind": "EndpointSlice", "metadata": {"name": "b", "labels": {"kubernetes.io/service-name": "backend"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": false}}],
        "ports": [{"name": "https", "port": 443}]});
    admin.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
    reason("MissingEndpoints").await;
    admin.delete(&format!("{services}/backend")).await;
    reason("ServiceNotFound").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_keeps_its_transition_time_with_its_status() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(API_SERVICES, &remote_api_service("time.example.com", "", 8443)).await;
    let path = format!("{API_SERVICES}/v1.time.example.com");
    let with_reason = |wanted: &'static str| {
        let (admin, path) = (admin.clone(), path.clone());
        eventually(wanted, move || {
            let (admin, path) = (admin.clone(), path.clone());
            async move {
                let object = admin.get(&path).await.json();
                if available_condition(&object).1 == wanted {
                    Ok(object["status"]["conditions"][0]["lastTransitionTime"].clone())
                } else {
                    Err(object)
                }
            }
        })
    };
    let before = with_reason("ServiceNotFound").await;
    // Timestamps have a precision of seconds: wait for the next one.
    portico_tests::process::pause(Duration::from_millis(1100)).await;
    let service =
        json!({"kind": "Service", "metadata": {"name": "backend"}, "spec": {"ports": [{"port": 443}]}});
    admin.post("/api/v1/namespaces/default/services", &service).await;
    assert_eq!(with_reason("ServicePortError").await, before);
}
