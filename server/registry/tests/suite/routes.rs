//! Routes and media types inside a group version.

use crate::harness::{Harness, JSON, MERGE, object};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn unknown_paths_get_404_and_unsupported_methods_get_405() {
    let harness = Harness::open().await;
    let rows = [
        ("GET", "/api/v1/things", 404),
        ("GET", "/api/v2/configmaps", 404),
        ("GET", "/api/v1/configmaps/x", 404),
        ("GET", "/api/v1/Namespaces", 404),
        ("GET", "/api/v1/namespaces/default/namespaces/x", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/x/status", 404),
        ("GET", "/api/v1/namespaces/default/status/more", 404),
        ("POST", "/api/v1/namespaces/default", 405),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("PUT", MAPS, 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("GET", "/api/v1/namespaces/default/finalize", 405),
        ("OPTIONS", MAPS, 405),
        ("BREW", MAPS, 405),
    ];
    for (method, url, code) in rows {
        let reply = harness.request(method, url, JSON, MERGE, "{}").await;
        assert_eq!((reply.code, reply.at("details").as_str()), (code, "{}"), "{method} {url}");
    }
}

#[tokio::test]
async fn unsupported_media_types_get_406_and_415() {
    let harness = Harness::open().await;
    let route = harness.request("GET", MAPS, "text/html", "", "").await;
    assert_eq!(route.code, 406);
    assert!(
        route.at("message").starts_with("406: Not Acceptable\n\nAvailable representations: application/json")
    );
    let list = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    assert_eq!(harness.request("GET", MAPS, list, "", "").await.code, 406);
    assert_eq!(harness.request("POST", MAPS, JSON, "text/plain", "x").await.code, 415);
    let patch = harness.request("PATCH", &format!("{MAPS}/x"), JSON, JSON, "{}").await;
    assert_eq!((patch.code, patch.at("message").as_str()), (415, "415: Unsupported Media Type"));
    let watch = harness.request("GET", &format!("{MAPS}?watch=true"), "application/yaml", "", "").await;
    assert_eq!(watch.code, 406);
}

#[tokio::test]
async fn the_result_of_an_action_has_no_table() {
    let harness = Harness::open().await;
    let url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let body = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(harness.request("POST", url, table, JSON, body).await.code, 406);
    assert_eq!(harness.request("POST", url, &format!("{table},{JSON}"), JSON, body).await.code, 201);
}

#[tokio::test]
async fn yaml_bodies_are_decoded_and_yaml_is_negotiated() {
    let harness = Harness::open().await;
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: \"1\"}\n";
    let answer = harness.answer("POST", MAPS, "application/yaml", "application/yaml", body).await;
    assert_eq!((answer.code, answer.media_type()), (201, "application/yaml"), "{answer:?}");
    let missing = harness.answer("GET", &format!("{MAPS}/none"), "application/yaml", "", "").await;
    assert_eq!((missing.code, missing.media_type()), (404, "application/yaml"));
    assert_eq!(missing.status.unwrap().message, "configmaps \"none\" not found");
}

#[tokio::test]
async fn names_that_are_not_a_path_segment_are_refused() {
    let harness = Harness::open().await;
    let reply = harness.get(&format!("{MAPS}/a%b")).await;
    assert_eq!(
        (reply.code, reply.at("message").as_str()),
        (400, "Name parameter invalid: \"a%b\": may not contain '%'")
    );
}

#[tokio::test]
async fn endpoints_return_a_deprecation_warning_even_if_refused() {
    let harness = Harness::open().await;
    let url = "/api/v1/namespaces/default/endpoints/none";
    assert_eq!(
        harness.get(url).await.warnings,
        ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]
    );
    assert!(harness.get(&format!("{MAPS}/none")).await.warnings.is_empty());
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_413() {
    let harness = Harness::open().await;
    let body = object("ConfigMap", "big", &format!(r#","data":{{"k":"{}"}}"#, "x".repeat(3 * 1024 * 1024)));
    assert_eq!(harness.post(MAPS, &body).await.code, 413);
}
