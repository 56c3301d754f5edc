//! Service, Endpoints, EndpointSlice and Event: objects that routing reads.

use crate::harness::{Harness, MERGE, TABLE, object};

const SERVICES: &str = "/api/v1/namespaces/default/services";

#[tokio::test]
async fn defaults_follow_from_the_other_fields() {
    let harness = Harness::open().await;
    let reply = harness
        .post(SERVICES, &object("Service", "s", r#","spec":{"clusterIP":"10.0.0.7","ports":[{"port":80}]}"#))
        .await;
    let spec = reply.object().get(&["spec"]).unwrap();
    let spec = portico_machinery::Object::from_node(spec).unwrap().to_json();
    assert_eq!(
        String::from_utf8(spec).unwrap(),
        r#"{"ports":[{"protocol":"TCP","port":80,"targetPort":80}],"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"type":"ClusterIP","sessionAffinity":"None","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","internalTrafficPolicy":"Cluster"}"#
    );
    let external = harness
        .post(SERVICES, &object("Service", "e", r#","spec":{"type":"ExternalName","externalName":"a.b"}"#))
        .await;
    assert_eq!(external.at("status"), r#"{"loadBalancer":{}}"#);
    assert_eq!(external.at("spec.ipFamilies"), "\"\"");
}

#[tokio::test]
async fn an_address_is_immutable_and_kept_if_absent_from_an_update() {
    let harness = Harness::open().await;
    let url = format!("{SERVICES}/s");
    harness
        .post(SERVICES, &object("Service", "s", r#","spec":{"clusterIP":"10.0.0.7","ports":[{"port":80}]}"#))
        .await;
    let kept = harness.put(&url, &object("Service", "s", r#","spec":{"ports":[{"port":81}]}"#)).await;
    assert_eq!(kept.at("spec.clusterIPs"), r#"["10.0.0.7"]"#);
    let moved = harness.patch(&url, MERGE, r#"{"spec":{"clusterIP":"10.0.0.8"}}"#).await;
    assert_eq!(
        moved.at("message"),
        r#"Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set"#
    );
    let freed = harness.patch(&url, MERGE, r#"{"spec":{"type":"ExternalName","externalName":"x.y"}}"#).await;
    assert_eq!((freed.code, freed.at("spec.clusterIP").as_str()), (200, "\"\""), "{freed:?}");
}

#[tokio::test]
async fn errors_of_invalid_services_contain_the_cause() {
    let harness = Harness::open().await;
    for (spec, words) in [
        ("{}", "spec.ports: Required value"),
        (
            r#"{"ports":[{"port":0}]}"#,
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            r#"{"ports":[{"port":1},{"port":2}]}"#,
            "spec.ports[0].name: Required value, spec.ports[1].name: Required value",
        ),
        (r#"{"type":"ExternalName"}"#, "spec.externalName: Required value"),
        (
            r#"{"type":"Odd","ports":[{"port":1}]}"#,
            r#"spec.type: Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#,
        ),
        (
            r#"{"ports":[{"port":1,"nodePort":30000}]}"#,
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
    ] {
        let reply = harness.post(SERVICES, &object("Service", "s", &format!(r#","spec":{spec}"#))).await;
        assert_eq!(reply.code, 422, "{reply:?}");
        assert!(reply.at("message").contains(words), "{}\nlacks\n{words}", reply.at("message"));
    }
}

#[tokio::test]
async fn slices_have_a_generation_and_validated_addresses() {
    let harness = Harness::open().await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let body = r#"{"metadata":{"name":"e"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"]}],"ports":[{"name":"p","port":80}]}"#;
    let created = harness.post(slices, body).await;
    assert_eq!((created.code, created.at("metadata.generation").as_str()), (201, "1"));
    let url = format!("{slices}/e");
    let annotated = harness.patch(&url, MERGE, r#"{"metadata":{"annotations":{"a":"b"}}}"#).await;
    assert_eq!(annotated.at("metadata.generation"), "1");
    let changed = harness.patch(&url, MERGE, r#"{"ports":[{"name":"p","port":81}]}"#).await;
    assert_eq!(changed.at("metadata.generation"), "2");
    let reply = harness.post(slices, &body.replace("10.1.2.3", "127.0.0.1").replace("\"e\"", "\"f\"")).await;
    assert!(reply.at("message").contains("may not be in the loopback range"));
    let table = harness.request("GET", &url, TABLE, "", "").await;
    assert_eq!(
        (table.at("rows.0.cells.2").as_str(), table.at("rows.0.cells.3").as_str()),
        ("81", "10.1.2.3")
    );
}

#[tokio::test]
async fn an_event_involves_an_object_of_its_namespace_and_its_table_starts_with_the_age() {
    let harness = Harness::open().await;
    let events = "/api/v1/namespaces/default/events";
    let body = r#"{"metadata":{"name":"E_1:x"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"source":{"component":"c"},"message":" hi ","reason":"R","type":"Normal"}"#;
    assert_eq!(harness.post(events, body).await.code, 201);
    let elsewhere =
        harness.post(events, &body.replace("\"default\"", "\"other\"").replace("E_1", "E_2")).await;
    assert!(
        elsewhere
            .at("message")
            .contains("involvedObject.namespace: Invalid value: \"other\": does not match event.namespace")
    );
    assert_eq!(
        harness.get(&format!("{events}?fieldSelector=source%3Dc,involvedObject.name%3Dp")).await.names(),
        ["E_1:x"]
    );
    let table = harness.request("GET", events, TABLE, "", "").await;
    assert_eq!(
        (table.at("rows.0.cells.0").as_str(), table.at("rows.0.cells.3").as_str()),
        ("<unknown>", "pod/p")
    );
    assert_eq!((table.at("rows.0.cells.6").as_str(), table.at("rows.0.cells.8").as_str()), ("hi", "1"));
}

/// Creates a Service with this spec.
async fn create_service(harness: &Harness, name: &str, spec: &str) -> crate::harness::Reply {
    harness.post(SERVICES, &object("Service", name, &format!(r#","spec":{spec}"#))).await
}

#[tokio::test]
async fn addresses_and_ports_are_allocated_once_and_released() {
    let harness = Harness::open().await;
    let spec = r#"{"type":"NodePort","clusterIP":"10.0.0.7","ports":[{"port":80,"nodePort":30001}]}"#;
    assert_eq!(create_service(&harness, "a", spec).await.code, 201);
    let address = harness.get("/apis/networking.k8s.io/v1/ipaddresses/10.0.0.7").await;
    assert_eq!(address.at("spec.parentRef.name"), "a");
    for (spec, words) in [
        (
            r#"{"clusterIP":"10.0.0.7","ports":[{"port":80}]}"#,
            r#"Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.7"]: failed to allocate IP 10.0.0.7: provided IP is already allocated"#,
        ),
        (
            r#"{"type":"NodePort","ports":[{"port":80,"nodePort":30001}]}"#,
            r#"Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated"#,
        ),
    ] {
        let reply = create_service(&harness, "b", spec).await;
        assert_eq!((reply.code, reply.at("message").as_str()), (422, words));
    }
    harness.patch(&format!("{SERVICES}/a"), MERGE, r#"{"spec":{"type":"ClusterIP"}}"#).await;
    let port =
        create_service(&harness, "c", r#"{"type":"NodePort","ports":[{"port":80,"nodePort":30001}]}"#).await;
    assert_eq!(port.code, 201, "{port:?}");
    harness.delete(&format!("{SERVICES}/a")).await;
    assert_eq!(harness.get("/apis/networking.k8s.io/v1/ipaddresses/10.0.0.7").await.code, 404);
    assert_eq!(create_service(&harness, "d", spec).await.code, 422, "the port is c's");
    harness.delete(&format!("{SERVICES}/c")).await;
    assert_eq!(create_service(&harness, "d", spec).await.code, 201);
}

#[tokio::test]
async fn concurrent_creates_never_share_an_address() {
    let harness = Harness::open().await;
    let names: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    let spec = r#"{"type":"NodePort","ports":[{"port":80}]}"#;
    let made = futures::future::join_all(names.iter().map(|name| create_service(&harness, name, spec))).await;
    let mut given: Vec<String> = made.iter().map(|reply| reply.at("spec.clusterIP")).collect();
    let mut ports: Vec<String> = made.iter().map(|reply| reply.at("spec.ports.0.nodePort")).collect();
    for list in [&mut given, &mut ports] {
        list.sort();
        list.dedup();
        assert_eq!(list.len(), 40, "{list:?}");
    }
    let used = harness.get("/apis/networking.k8s.io/v1/ipaddresses").await.names();
    assert!(given.iter().all(|address| used.contains(address)));
}

#[tokio::test]
async fn refused_creates_and_dry_runs_allocate_nothing() {
    let harness = Harness::open().await;
    let bad = r#"{"type":"NodePort","ports":[{"port":80,"nodePort":30001,"protocol":"X"}]}"#;
    assert_eq!(create_service(&harness, "a", bad).await.code, 422);
    let tried = harness
        .post(
            &format!("{SERVICES}?dryRun=All"),
            &object("Service", "a", r#","spec":{"type":"NodePort","ports":[{"port":80}]}"#),
        )
        .await;
    assert_eq!(
        (tried.at("spec.clusterIP").as_str(), tried.at("spec.ports.0.nodePort").as_str()),
        ("10.0.0.0", "32769")
    );
    assert_eq!(harness.get("/apis/networking.k8s.io/v1/ipaddresses").await.names(), Vec::<String>::new());
    let good = r#"{"type":"NodePort","ports":[{"port":80,"nodePort":30001}]}"#;
    assert_eq!(create_service(&harness, "b", good).await.code, 201);
}

#[tokio::test]
async fn a_change_of_the_type_keeps_fields_that_still_apply() {
    let harness = Harness::open().await;
    let url = format!("{SERVICES}/a");
    let spec = r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"name":"w","port":80}]}"#;
    let first = create_service(&harness, "a", spec).await;
    let (address, port) = (first.at("spec.clusterIP"), first.at("spec.ports.0.nodePort"));
    assert!(first.at("spec.healthCheckNodePort").parse::<u16>().is_ok(), "{first:?}");
    let put = r#","spec":{"type":"NodePort","ports":[{"name":"w","port":81}]}"#;
    let second = harness.put(&url, &object("Service", "a", put)).await;
    assert_eq!((second.at("spec.clusterIP"), second.at("spec.ports.0.nodePort")), (address.clone(), port));
    assert_eq!(second.at("spec.healthCheckNodePort"), "\"\"");
    let third = harness.patch(&url, MERGE, r#"{"spec":{"type":"ExternalName","externalName":"x.y"}}"#).await;
    assert_eq!(third.at("spec.clusterIP"), "\"\"", "{third:?}");
    let back = harness.patch(&url, MERGE, r#"{"spec":{"type":"ClusterIP","externalName":null}}"#).await;
    assert!(back.at("spec.clusterIP").starts_with("10.0.0."), "{back:?}");
    let moved = harness.patch(&url, MERGE, r#"{"spec":{"clusterIP":"None"}}"#).await;
    assert!(moved.at("message").ends_with("may not change once set"), "{moved:?}");
    let two = harness.patch(&url, MERGE, r#"{"spec":{"ipFamilyPolicy":"RequireDualStack"}}"#).await;
    assert!(two.at("message").ends_with("this cluster is not configured for dual-stack services"), "{two:?}");
}

#[tokio::test]
async fn an_ip_address_object_has_a_canonical_name_of_either_family() {
    let harness = Harness::open().await;
    let url = "/apis/networking.k8s.io/v1/ipaddresses";
    let address = |name: &str| {
        let spec = r#"{"parentRef":{"resource":"services","namespace":"default","name":"x"}}"#;
        format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#)
    };
    assert_eq!(harness.post(url, &address("2001:db8::1")).await.code, 201);
    let refused = harness.post(url, &address("2001:db8::01")).await;
    assert_eq!((refused.code, refused.at("details.causes.0.field").as_str()), (422, "metadata.name"));
    assert_eq!(refused.at("message").matches("metadata.name").count(), 1, "{refused:?}");
}

#[tokio::test]
async fn an_external_name_service_has_no_internal_traffic_policy() {
    let harness = Harness::open().await;
    let spec = r#","spec":{"type":"ExternalName","externalName":"a.b","internalTrafficPolicy":"Local"}"#;
    let created = harness.post(SERVICES, &object("Service", "e", spec)).await;
    assert_eq!((created.code, created.at("spec.internalTrafficPolicy").as_str()), (201, "\"\""));
}

#[tokio::test]
async fn errors_of_scaling_rules_in_an_annotation_name_their_policies() {
    let harness = Harness::open().await;
    let scaler = r#"{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h","annotations":
        {"autoscaling.alpha.kubernetes.io/behavior":"{\"ScaleUp\":{\"StabilizationWindowSeconds\":3}}"}},
        "spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}"#;
    let refused =
        harness.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", scaler).await;
    assert_eq!(
        refused.at("message"),
        r#"HorizontalPodAutoscaler.autoscaling "h" is invalid: spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"#
    );
}
