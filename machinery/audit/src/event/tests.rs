//! Encoding of events, compared with lines of a kube-apiserver's log and with upstream's code.

use super::*;

fn event() -> Event {
    let at = "2026-11-24T15:35:30.7552934Z".parse().unwrap();
    let mut event = Event::new(Level::RequestResponse, "q028", at);
    event.request_uri = "/api/v1/namespaces/rr/configmaps".to_owned();
    event.verb = "list".to_owned();
    event.user = Arc::new(UserInfo {
        uid: "uid-admin".to_owned(),
        ..UserInfo::new("admin", ["system:masters", "system:authenticated"])
    });
    event.source_ips = vec!["1.2.3.4".to_owned(), "127.0.0.1".to_owned()];
    event.set_user_agent(b"t");
    event.object_ref = Some(ObjectReference {
        resource: "configmaps".to_owned(),
        namespace: "rr".to_owned(),
        api_version: "v1".to_owned(),
        ..ObjectReference::default()
    });
    event
}

fn impersonation_event() -> Event {
    let mut event = event();
    let mut bob = UserInfo::new("bob", ["g", "system:authenticated"]);
    bob.extra.insert("k".to_owned(), vec!["v".to_owned()]);
    event.impersonated_user = Some(Arc::new(bob));
    event.stage = Stage::ResponseComplete;
    event.stage_time = "2026-11-24T15:35:30.756063Z".parse().unwrap();
    let status = Status::failure(portico_machinery::Reason::Forbidden, "User \"bob\" cannot <list>");
    let details = Details { kind: "configmaps".to_owned(), ..Details::default() };
    event.response_status = Some(ResponseStatus::from(&status.with_details(details)));
    event.response_object = Some(Bytes::from_static(b"{\"kind\": \"Status\"}\n"));
    assert!(event.annotate("authorization.k8s.io/reason", ""));
    assert!(event.annotate("authorization.k8s.io/decision", "forbid"));
    event
}

#[test]
fn an_event_has_upstreams_members_in_upstreams_order() {
    let received = concat!(
        r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"q028","#,
        r#""stage":"RequestReceived","requestURI":"/api/v1/namespaces/rr/configmaps","verb":"list","user":{"#,
        r#""username":"admin","uid":"uid-admin","groups":["system:masters","system:authenticated"]},"#,
        r#""sourceIPs":["1.2.3.4","127.0.0.1"],"userAgent":"t","objectRef":{"resource":"configmaps","#,
        r#""namespace":"rr","apiVersion":"v1"},"requestReceivedTimestamp":"2026-11-24T15:35:30.755293Z","#,
        r#""stageTimestamp":"2026-11-24T15:35:30.755293Z"}"#
    );
    assert_eq!(String::from_utf8(event().to_json()).unwrap(), received);
    let complete = String::from_utf8(impersonation_event().to_json()).unwrap();
    let (_, rest) = complete.split_once(r#""system:authenticated"]},"#).unwrap();
    let expected = concat!(
        r#""impersonatedUser":{"username":"bob","groups":["g","system:authenticated"],"extra":{"k":["v"]}},"#,
        r#""sourceIPs":["1.2.3.4","127.0.0.1"],"userAgent":"t","objectRef":{"resource":"configmaps","#,
        r#""namespace":"rr","apiVersion":"v1"},"responseStatus":{"metadata":{},"status":"Failure","#,
        r#""message":"User \"bob\" cannot \u003clist\u003e","reason":"Forbidden","#,
        r#""details":{"kind":"configmaps"},"code":403},"responseObject":{"kind":"Status"},"#,
        r#""requestReceivedTimestamp":"2026-11-24T15:35:30.755293Z","#,
        r#""stageTimestamp":"2026-11-24T15:35:30.756063Z","#,
        r#""annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":""}}"#
    );
    assert_eq!(rest, expected);
}

#[test]
fn an_element_of_a_list_has_no_type() {
    let json = event().to_json();
    let element = Event::without_type(&json).unwrap();
    assert!(element.starts_with(br#""level":"RequestResponse""#));
    assert_eq!(Event::without_type(b"{}"), None);
}

#[test]
fn an_unauthenticated_user_is_an_empty_object() {
    let mut event = event();
    event.user = Arc::default();
    assert!(String::from_utf8(event.to_json()).unwrap().contains(r#""verb":"list","user":{},"sourceIPs""#));
}

#[test]
fn the_constraint_of_an_impersonation_is_in_authentication_metadata() {
    let mut event = impersonation_event();
    event.impersonation_constraint = "impersonate:user-info".to_owned();
    let json = String::from_utf8(event.to_json()).unwrap();
    let expected =
        r#"{"k":["v"]}},"authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},"#;
    assert!(json.contains(expected), "{json}");
}

#[test]
fn a_long_user_agent_is_truncated_and_marked() {
    let mut event = event();
    event.set_user_agent(&[b'u'; 1024]);
    assert_eq!(event.user_agent, "u".repeat(1024));
    event.set_user_agent(&[b'u'; 1025]);
    assert_eq!(event.user_agent, format!("{}...TRUNCATED", "u".repeat(1024)));
}

#[test]
fn an_annotation_is_set_once() {
    let mut event = event();
    assert!(event.annotate("a", "1") && event.annotate("a", "1"));
    assert!(!event.annotate("a", "2"));
    assert_eq!(event.annotations["a"], "1");
}

#[test]
fn a_truncated_event_lacks_objects_and_nothing_else() {
    let truncated = impersonation_event().truncated();
    assert_eq!(truncated.annotations["audit.k8s.io/truncated"], "true");
    assert_eq!((truncated.request_object, truncated.response_object), (None, None));
    assert_eq!(truncated.response_status, impersonation_event().response_status);
}

#[test]
fn the_object_that_was_sent_completes_the_request_line() {
    let mut object = ObjectReference { name: "line".to_owned(), ..ObjectReference::default() };
    object.complete("ns", "body", "uid", "7");
    let found = [&object.namespace, &object.name, &object.uid, &object.resource_version];
    assert_eq!(found, ["ns", "line", "uid", "7"]);
}

#[test]
fn a_legacy_line_equals_upstreams() {
    let line = concat!(
        r#"2026-11-24T15:35:30.7552934Z AUDIT: id="q028" stage="RequestReceived" ip="1.2.3.4" method="list" "#,
        r#"user="admin" groups="\"system:masters\",\"system:authenticated\"" as="<self>" asgroups="<lookup>" "#,
        r#"user-agent="t" namespace="rr" uri="/api/v1/namespaces/rr/configmaps" response="<deferred>""#
    );
    assert_eq!(event().to_line(), line);
    let line = impersonation_event().to_line();
    assert!(line.contains(r#" as="bob" asgroups="\"g\",\"system:authenticated\"" "#), "{line}");
    assert!(line.ends_with(r#" response="403""#), "{line}");
    let bare = Event::new(Level::Metadata, "", "2026-01-02T03:04:05Z".parse().unwrap()).to_line();
    let expected = concat!(
        r#"2026-01-02T03:04:05Z AUDIT: id="" stage="RequestReceived" ip="<unknown>" method="" user="<none>" "#,
        r#"groups="<none>" as="<self>" asgroups="<lookup>" user-agent="" namespace="<none>" uri="" response="<deferred>""#
    );
    assert_eq!(bare, expected);
}
