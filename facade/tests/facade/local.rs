//! Local APIs: calls that reach the control service, and the handling of its responses.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use portico_proto::objects::DoResponse;

use super::control::ScriptedControl;
use super::rig::{Rig, eventually, served};

fn answer(code: u32, body: &str) -> DoResponse {
    let body = Bytes::copy_from_slice(body.as_bytes());
    DoResponse { code, body, media_type: "application/json".into(), ..DoResponse::default() }
}

#[tokio::test]
async fn a_call_carries_the_caller_and_the_response_has_its_warnings() {
    let rig = Rig::start(vec![served("apps", "v1")]).await.until_configured().await;
    let scripted =
        DoResponse { warnings: vec!["careful".into()], retry_after_seconds: 3, ..answer(201, "{\"a\":1}\n") };
    rig.control.push_answer(scripted);
    let headers = [
        ("content-type", "application/json"),
        ("impersonate-user", "bob"),
        ("impersonate-group", "system:masters"),
        ("audit-id", "id-1"),
    ];
    let path = "/apis/apps/v1/namespaces/n/deployments/d/scale?dryRun=All";
    let got = rig.client.send(Method::PUT, path, &headers, "{}").await;
    assert_eq!((got.code, got.text.as_str()), (201, "{\"a\":1}\n"));
    assert_eq!((got.header("warning"), got.header("retry-after")), ("299 - \"careful\"", "3"));
    assert_eq!(got.header("audit-id"), "id-1");
    let received = rig.control.received_calls().pop().unwrap();
    assert!(received.trusted);
    assert_eq!(
        (received.forwarded.user.name.as_str(), received.forwarded.audit_id.as_str()),
        ("bob", "id-1")
    );
    assert_eq!(received.forwarded.request.verb, "update");
    let target = received.call.target.unwrap();
    let parts = [
        &target.group,
        &target.version,
        &target.resource,
        &target.subresource,
        &target.namespace,
        &target.name,
    ];
    assert_eq!(parts.map(String::as_str), ["apps", "v1", "deployments", "scale", "n", "d"]);
    assert_eq!((received.call.query.as_str(), &received.call.body[..]), ("dryRun=All", b"{}".as_slice()));
}

#[tokio::test]
async fn json_is_formatted_as_requested() {
    let rig = Rig::start(vec![served("apps", "v1")]).await.until_configured().await;
    for (headers, query, want) in [
        (&[][..], "", "{\"a\":[1]}\n"),
        (&[("user-agent", "curl/8")][..], "", "{\n  \"a\": [\n    1\n  ]\n}"),
        (&[("accept", "application/yaml")][..], "", "a:\n- 1\n"),
        (&[][..], "?pretty=true", "{\n  \"a\": [\n    1\n  ]\n}"),
    ] {
        rig.control.push_answer(answer(200, "{\"a\":[1]}\n"));
        let got = rig.client.send(Method::GET, &format!("/apis/apps/v1/things/x{query}"), headers, "").await;
        assert_eq!(got.text, want, "{headers:?} {query}");
    }
}

#[tokio::test]
async fn a_list_is_streamed_and_a_body_over_the_limit_does_not_reach_the_control_service() {
    let rig = Rig::with_settings(ScriptedControl::new(vec![served("apps", "v1")]), |s| {
        s.max_request_body_bytes = 10
    })
    .await;
    let rig = rig.until_configured().await;
    let parts: Vec<Bytes> = (0..300).map(|n| Bytes::from(format!("{n:01000}"))).collect();
    rig.control.set_list_parts(parts.clone());
    let got = rig.client.get("/apis/apps/v1/things?fieldSelector=metadata.name%3Dx").await;
    assert_eq!(got.text.as_bytes(), parts.concat());
    let received = rig.control.received_calls().pop().unwrap();
    assert_eq!(
        (received.forwarded.request.name.as_str(), received.call.target.unwrap().name.as_str()),
        ("x", "")
    );
    let got = rig.client.send(Method::POST, "/apis/apps/v1/things", &[], "12345678901").await;
    assert_eq!(got.code, 413);
    assert!(got.text.contains("Request entity too large: limit is 10"), "{}", got.text);
    assert_eq!(rig.control.received_calls().len(), 1);
}

#[tokio::test]
async fn a_client_that_reads_late_receives_all_events() {
    let rig = Rig::with_settings(ScriptedControl::new(vec![served("apps", "v1")]), |s| {
        s.watch_buffer_bytes = 64 * 1024
    })
    .await;
    let rig = rig.until_configured().await;
    let watch = "/apis/apps/v1/things?watch=true";
    let mut response = rig.client.open(Method::GET, watch, &[], "").await.unwrap();
    assert_eq!(response.headers()["warning"], "299 - \"old\"");
    let event = Bytes::from(vec![b'x'; 4 * 1024]);
    for _ in 0..4_000 {
        assert!(rig.control.frame(event.clone()));
    }
    let mut read = 0;
    while read < 4_000 * event.len() {
        read += response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
    rig.control.push_answer(answer(410, "{\"kind\":\"Status\"}\n"));
    assert_eq!(rig.client.get(watch).await.code, 410);
}

#[tokio::test]
async fn without_a_control_service_local_apis_report_it_as_unavailable() {
    let rig = Rig::start(vec![served("apps", "v1")]).await.until_configured().await;
    rig.control.set_away(true);
    for path in ["/apis/apps/v1/things/x", "/apis/apps/v1/things", "/apis/apps/v1/things?watch=true"] {
        let got = rig.client.get(path).await;
        assert_eq!(got.code, 503, "{path}: {}", got.text);
        assert!(got.text.contains("\"reason\":\"ControlServiceUnavailable\""), "{}", got.text);
        assert_eq!(got.header("retry-after"), "1");
    }
    // A retried write could be applied more than once.
    let write = rig.client.send(Method::POST, "/apis/apps/v1/things", &[], "{}").await;
    assert_eq!((write.code, write.header("retry-after")), (503, ""));
    let verbose = eventually(|| async {
        let text = rig.client.get("/readyz?verbose").await.text;
        text.contains("fail-static").then_some(text)
    });
    let text = verbose.await;
    assert!(
        text.contains(
            "[+]fail-static: serving revision 1 of store store, the control service is unreachable ok\n"
        ),
        "{text}"
    );
    rig.control.set_away(false);
    rig.control.push_answer(answer(200, "{}\n"));
    eventually(|| async {
        (!rig.client.get("/readyz?verbose").await.text.contains("fail-static")).then_some(())
    })
    .await;
    assert_eq!(rig.client.get("/apis/apps/v1/things/x").await.code, 200);
}
