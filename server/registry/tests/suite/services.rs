//! Service, Endpoints, EndpointSlice, Event: what routing reads.

use crate::harness::{Door, MERGE, TABLE, object};

const SERVICES: &str = "/api/v1/namespaces/default/services";

#[tokio::test]
async fn defaults_follow_from_the_other_fields() {
    let door = Door::open().await;
    let reply = door
        .post(SERVICES, &object("Service", "s", r#","spec":{"clusterIP":"10.0.0.7","ports":[{"port":80}]}"#))
        .await;
    let spec = reply.object().get(&["spec"]).unwrap();
    let spec = portico_machinery::Object::from_node(spec).unwrap().to_json();
    assert_eq!(
        String::from_utf8(spec).unwrap(),
        r#"{"ports":[{"protocol":"TCP","port":80,"targetPort":80}],"clusterIP":"10.0.0.7","type":"ClusterIP","sessionAffinity":"None","ipFamilyPolicy":"SingleStack","clusterIPs":["10.0.0.7"],"ipFamilies":["IPv4"],"internalTrafficPolicy":"Cluster"}"#
    );
    let external = door
        .post(SERVICES, &object("Service", "e", r#","spec":{"type":"ExternalName","externalName":"a.b"}"#))
        .await;
    assert_eq!(external.at("status"), r#"{"loadBalancer":{}}"#);
    assert_eq!(external.at("spec.ipFamilies"), "\"\"");
}

#[tokio::test]
async fn an_address_stays_once_set_and_is_kept_when_left_out() {
    let door = Door::open().await;
    let url = format!("{SERVICES}/s");
    door.post(SERVICES, &object("Service", "s", r#","spec":{"clusterIP":"10.0.0.7","ports":[{"port":80}]}"#))
        .await;
    let kept = door.put(&url, &object("Service", "s", r#","spec":{"ports":[{"port":81}]}"#)).await;
    assert_eq!(kept.at("spec.clusterIPs"), r#"["10.0.0.7"]"#);
    let moved = door.patch(&url, MERGE, r#"{"spec":{"clusterIP":"10.0.0.8"}}"#).await;
    assert_eq!(
        moved.at("message"),
        r#"Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set"#
    );
    let freed = door.patch(&url, MERGE, r#"{"spec":{"type":"ExternalName","externalName":"x.y"}}"#).await;
    assert_eq!((freed.code, freed.at("spec.clusterIP").as_str()), (200, "\"\""), "{freed:?}");
}

#[tokio::test]
async fn wrong_services_are_told_why() {
    let door = Door::open().await;
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
        let reply = door.post(SERVICES, &object("Service", "s", &format!(r#","spec":{spec}"#))).await;
        assert_eq!(reply.code, 422, "{reply:?}");
        assert!(reply.at("message").contains(words), "{}\nlacks\n{words}", reply.at("message"));
    }
}

#[tokio::test]
async fn slices_count_their_generation_and_check_their_addresses() {
    let door = Door::open().await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let body = r#"{"metadata":{"name":"e"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"]}],"ports":[{"name":"p","port":80}]}"#;
    let created = door.post(slices, body).await;
    assert_eq!((created.code, created.at("metadata.generation").as_str()), (201, "1"));
    let url = format!("{slices}/e");
    let annotated = door.patch(&url, MERGE, r#"{"metadata":{"annotations":{"a":"b"}}}"#).await;
    assert_eq!(annotated.at("metadata.generation"), "1");
    let changed = door.patch(&url, MERGE, r#"{"ports":[{"name":"p","port":81}]}"#).await;
    assert_eq!(changed.at("metadata.generation"), "2");
    let bad = door.post(slices, &body.replace("10.1.2.3", "127.0.0.1").replace("\"e\"", "\"f\"")).await;
    assert!(bad.at("message").contains("may not be in the loopback range"));
    let table = door.ask("GET", &url, TABLE, "", "").await;
    assert_eq!(
        (table.at("rows.0.cells.2").as_str(), table.at("rows.0.cells.3").as_str()),
        ("81", "10.1.2.3")
    );
}

#[tokio::test]
async fn an_event_is_about_something_in_its_namespace_and_its_table_begins_with_its_age() {
    let door = Door::open().await;
    let events = "/api/v1/namespaces/default/events";
    let body = r#"{"metadata":{"name":"E_1:x"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"source":{"component":"c"},"message":" hi ","reason":"R","type":"Normal"}"#;
    assert_eq!(door.post(events, body).await.code, 201);
    let elsewhere = door.post(events, &body.replace("\"default\"", "\"other\"").replace("E_1", "E_2")).await;
    assert!(
        elsewhere
            .at("message")
            .contains("involvedObject.namespace: Invalid value: \"other\": does not match event.namespace")
    );
    assert_eq!(
        door.get(&format!("{events}?fieldSelector=source%3Dc,involvedObject.name%3Dp")).await.names(),
        ["E_1:x"]
    );
    let table = door.ask("GET", events, TABLE, "", "").await;
    assert_eq!(
        (table.at("rows.0.cells.0").as_str(), table.at("rows.0.cells.3").as_str()),
        ("<unknown>", "pod/p")
    );
    assert_eq!((table.at("rows.0.cells.6").as_str(), table.at("rows.0.cells.8").as_str()), ("hi", "1"));
}
