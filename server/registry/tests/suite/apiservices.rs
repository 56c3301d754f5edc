//! APIServices: validation, strategies, table and annotations.

use crate::harness::{Harness, JSON_PATCH, MERGE, METADATA, TABLE, api_service};

const URL: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

fn remote(extra: &str) -> String {
    format!(r#","service":{{"namespace":"n","name":"s"}}{extra}"#)
}

#[tokio::test]
async fn a_remote_apiservice_starts_without_status_and_with_the_default_port() {
    let harness = Harness::open().await;
    let reply = harness.post(URL, &api_service("v1", "a.example.com", &remote(""))).await;
    assert_eq!(
        (reply.code, reply.at("spec.service.port").as_str(), reply.at("status").as_str()),
        (201, "443", "{}")
    );
    assert_eq!(reply.at("metadata.generation"), "\"\"");
    let again = harness.post(URL, &api_service("v1", "a.example.com", &remote(""))).await;
    assert_eq!(again.code, 409);
    assert_eq!(again.at("message"), "apiservices.apiregistration.k8s.io \"v1.a.example.com\" already exists");
}

#[tokio::test]
async fn a_local_apiservice_is_available_immediately_and_ignores_the_sent_status() {
    let harness = Harness::open().await;
    let body = api_service("v1", "a.example.com", "").replace(
        "\"spec\":",
        "\"status\":{\"conditions\":[{\"type\":\"Available\",\"status\":\"False\"}]},\"spec\":",
    );
    let reply = harness.post(URL, &body).await;
    assert_eq!(reply.at("status.conditions.0.reason"), "Local");
    assert_eq!(reply.at("status.conditions.0.message"), "Local APIServices are always available");
}

#[tokio::test]
async fn validation_errors_have_upstreams_fields_and_messages() {
    let harness = Harness::open().await;
    let wrong_name =
        api_service("v1", "a.example.com", "").replace("\"name\":\"v1.a.example.com\"", "\"name\":\"wrong\"");
    let rows = [
        (
            wrong_name,
            r#"metadata.name: Invalid value: "wrong": must be `spec.version+"."+spec.group`: "v1.a.example.com""#,
        ),
        (
            api_service("v2", "", ""),
            "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
        ),
        (api_service("v1", "UP", ""), "spec.group: Invalid value: \"UP\": a lowercase RFC 1123 subdomain"),
        (api_service("1", "a.b", ""), "spec.version: Invalid value: \"1\": a DNS-1035 label must consist"),
        (
            api_service("v1", "a.b", "").replace("1000", "20001"),
            "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
        ),
        (
            api_service("v1", "a.b", "").replace(":10}", ":1001}"),
            "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
        ),
        (
            api_service("v1", "a.b", r#","caBundle":"Zm9v""#),
            "spec.caBundle: Invalid value: \"3 bytes\": local APIServices may not have a caBundle",
        ),
        (
            api_service("v1", "a.b", r#","insecureSkipTLSVerify":true"#),
            "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
        ),
        (
            api_service("v1", "a.b", r#","service":{"namespace":"","name":"","port":70000}"#),
            "[spec.service.namespace: Required value, spec.service.name: Required value, spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive]",
        ),
        (
            api_service("v1", "a.b", &remote(r#","caBundle":"Zm9v","insecureSkipTLSVerify":true"#)),
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
        ),
    ];
    for (body, words) in rows {
        let reply = harness.post(URL, &body).await;
        assert_eq!(reply.code, 422, "{body}");
        let message = reply.at("message");
        let (_, reported) = message.split_once("is invalid: ").unwrap();
        assert!(reported.starts_with(words), "{reported}\nis not\n{words}");
    }
}

#[tokio::test]
async fn an_update_keeps_the_status_and_a_status_update_keeps_the_spec() {
    let harness = Harness::open().await;
    let url = format!("{URL}/v1.a.example.com");
    harness.post(URL, &api_service("v1", "a.example.com", &remote(""))).await;
    let status = r#"{"metadata":{"labels":{"x":"y"}},"spec":{"versionPriority":99},"status":{"conditions":[{"type":"Available","status":"False","reason":"Because"}]}}"#;
    let reply = harness.patch(&format!("{url}/status"), MERGE, status).await;
    assert_eq!((reply.code, reply.at("spec.versionPriority").as_str()), (200, "10"));
    assert_eq!(
        (reply.at("metadata.labels").as_str(), reply.at("status.conditions.0.reason").as_str()),
        ("\"\"", "Because")
    );
    let reply = harness.patch(&url, MERGE, r#"{"spec":{"versionPriority":30},"status":null}"#).await;
    assert_eq!(
        (reply.at("spec.versionPriority").as_str(), reply.at("status.conditions.0.reason").as_str()),
        ("30", "Because")
    );
    let odd = r#"{"status":{"conditions":[{"type":"A","status":"Maybe"}]}}"#;
    let bad = harness.patch(&format!("{url}/status"), MERGE, odd).await;
    assert!(bad.at("message").ends_with(r#"supported values: "False", "True", "Unknown""#));
}

#[tokio::test]
async fn a_put_requires_a_resource_version_and_an_existing_object() {
    let harness = Harness::open().await;
    let url = format!("{URL}/v1.a.example.com");
    let body = api_service("v1", "a.example.com", &remote(""));
    assert_eq!(harness.put(&url, &body).await.code, 404);
    harness.post(URL, &body).await;
    let reply = harness.put(&url, &body).await;
    assert_eq!(
        (reply.code, reply.at("message").as_str(), reply.at("details.kind").as_str()),
        (
            422,
            "apiservices.apiregistration.k8s.io \"v1.a.example.com\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
            "apiservices"
        )
    );
    let stale = body.replace("\"metadata\":{", "\"metadata\":{\"resourceVersion\":\"1\",");
    assert_eq!(harness.put(&url, &stale).await.code, 409);
}

#[tokio::test]
async fn a_table_shows_service_and_availability_and_partial_metadata_is_served() {
    let harness = Harness::open().await;
    let url = format!("{URL}/v1.a.example.com");
    harness.post(URL, &api_service("v1", "a.example.com", &remote(""))).await;
    let table = harness.request("GET", &url, TABLE, "", "").await;
    assert_eq!(table.at("rows.0.cells.1"), "n/s");
    assert_eq!(table.at("rows.0.cells.2"), "Unknown");
    assert_eq!(table.at("columnDefinitions.2.name"), "Available");
    assert_eq!(table.at("rows.0.object.kind"), "PartialObjectMetadata");
    let reason = r#"{"status":{"conditions":[{"type":"Available","status":"False","reason":"Because"}]}}"#;
    harness.patch(&format!("{url}/status"), MERGE, reason).await;
    assert_eq!(harness.request("GET", URL, TABLE, "", "").await.at("rows.0.cells.2"), "False (Because)");
    let metadata = harness.request("GET", &url, METADATA, "", "").await;
    assert_eq!(
        (metadata.at("kind").as_str(), metadata.at("spec").as_str()),
        ("PartialObjectMetadata", "\"\"")
    );
    assert_eq!(metadata.at("metadata.name"), "v1.a.example.com");
}

#[tokio::test]
async fn backend_annotations_are_validated() {
    let harness = Harness::open().await;
    let with = |annotations: &str, spec: &str| {
        api_service("v1", "a.example.com", spec)
            .replace("\"metadata\":{", &format!("\"metadata\":{{\"annotations\":{{{annotations}}},"))
    };
    let good = r#""portico.dev/backend-urls":"https://a:8443,https://b","portico.dev/backend-server-name":"x.y","portico.dev/backend-protocol":"h2""#;
    assert_eq!(harness.post(URL, &with(good, &remote(""))).await.code, 201);
    for bad in [
        r#""portico.dev/backend-urls":"http://a""#,
        r#""portico.dev/backend-urls":"https://a/path""#,
        r#""portico.dev/backend-server-name":"UP""#,
        r#""portico.dev/backend-protocol":"spdy""#,
    ] {
        let reply = harness.post(URL, &with(bad, &remote(""))).await;
        assert_eq!(reply.code, 422, "{bad}");
        assert!(reply.at("details.causes.0.field").starts_with("metadata.annotations[portico.dev/"));
    }
    let local = harness.post(URL, &with(good, "")).await;
    assert!(local.at("message").contains("may only be set when spec.service is set"), "{local:?}");
}

#[tokio::test]
async fn a_ca_bundle_that_is_no_pem_is_accepted_as_upstream_does() {
    let harness = Harness::open().await;
    let reply = harness.post(URL, &api_service("v1", "a.b", &remote(r#","caBundle":"Zm9v""#))).await;
    assert_eq!(reply.code, 201);
}

#[tokio::test]
async fn a_json_patch_whose_test_fails_changes_nothing() {
    let harness = Harness::open().await;
    let url = format!("{URL}/v1.a.example.com");
    let created = harness.post(URL, &api_service("v1", "a.example.com", &remote(""))).await;
    let patch =
        r#"[{"op":"test","path":"/spec/versionPriority","value":11},{"op":"remove","path":"/spec/service"}]"#;
    let reply = harness.patch(&url, JSON_PATCH, patch).await;
    assert_eq!(
        (reply.code, reply.at("message").as_str()),
        (422, "the server rejected our request due to an error in our request")
    );
    assert_eq!(harness.get(&url).await.text, created.text);
}
