//! Tests of header cleaning.

use std::collections::BTreeMap;
use std::net::IpAddr;

use http::header::HeaderValue;
use http::{HeaderMap, HeaderName};
use portico_machinery::UserInfo;

use super::*;

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

/// Adds the proxy's headers.
fn add_proxy_headers(
    headers: &mut HeaderMap,
    user: &UserInfo,
    client: Option<&str>,
    path: &str,
    id: &str,
) -> Result<(), crate::Refusal> {
    let client = client.map(|address| ClientAddress::from(address.parse::<IpAddr>().unwrap()));
    let (identity, id) = (Identity::new(user), HeaderValue::from_str(id).unwrap());
    let proxy_headers = ProxyHeaders::new(&identity, client.as_ref(), &id)?;
    proxy_headers.insert_into(headers, path);
    Ok(())
}

fn text(value: &HeaderValue) -> &str {
    std::str::from_utf8(value.as_bytes()).unwrap()
}

fn list(headers: &HeaderMap) -> Vec<String> {
    let mut all: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
    all.sort();
    all
}

#[test]
fn reserved_headers_are_removed_case_insensitively() {
    let mut headers = map(&[
        ("X-Remote-User", "root"),
        ("x-REMOTE-group", "system:masters"),
        ("X-Remote-Uid", "0"),
        ("X-Remote-Extra-Scope", "all"),
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "zoe"),
        ("impersonate-extra-a", "b"),
        ("X_Remote_User", "root"),
        ("x-remote_group", "system:masters"),
        ("X_Remote-Extra_Scope", "all"),
        ("Impersonate_User", "zoe"),
        ("X_Forwarded_For", "127.0.0.1"),
        ("Audit_ID", "1"),
        ("Proxy_Authorization", "x"),
        ("Transfer_Encoding", "chunked"),
        ("Content_Length", "0"),
        ("Accept", "a/b"),
        ("my_header", "kept"),
    ]);
    strip_request(&mut headers);
    assert_eq!(list(&headers), ["accept: a/b", "my_header: kept"]);
}

#[test]
fn announced_trailers_pass_unless_they_are_head_fields() {
    let forbidden = [
        "content-length",
        "transfer-encoding",
        "host",
        "authorization",
        "cache-control",
        "content-type",
        "set-cookie",
        "te",
        "trailer",
        "connection",
        "x-forwarded-for",
        "x-remote-user",
        "x_remote_user",
    ];
    let all =
        map(&forbidden.iter().chain(&["x-sum", "x-other"]).map(|name| (*name, "1")).collect::<Vec<_>>());
    let announced = format!("{}, X-Sum", forbidden.join(","));
    let mut request = all.clone();
    keep_announced(&mut request, &announced_trailers(&map(&[("trailer", &announced)])));
    assert_eq!(list(&request), ["x-sum: 1"]);
    let mut unannounced = all.clone();
    keep_announced(&mut unannounced, &announced_trailers(&HeaderMap::new()));
    assert!(unannounced.is_empty());
    let mut response = all;
    response.insert("audit-id", HeaderValue::from_static("theirs"));
    clean_trailers(&mut response);
    assert_eq!(list(&response), ["x-other: 1", "x-sum: 1"]);
}

#[test]
fn hop_by_hop_headers_and_headers_named_by_connection_are_removed() {
    let mut headers = map(&[
        ("Connection", "close, X-Secret"),
        ("Connection", "keep-alive"),
        ("X-Secret", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authorization", "x"),
        ("TE", "gzip, trailers"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "h2c"),
        ("Expect", "100-continue"),
        ("Trailer", "X-Sum"),
        ("X-Other", "2"),
    ]);
    strip_request(&mut headers);
    assert_eq!(list(&headers), ["te: trailers", "trailer: X-Sum", "x-other: 2"]);
}

#[test]
fn naming_identity_headers_in_connection_does_not_remove_the_real_ones() {
    let mut headers = map(&[("Connection", "X-Remote-User, X-Remote-Group, Audit-ID, X-Forwarded-For")]);
    strip_request(&mut headers);
    add_proxy_headers(&mut headers, &UserInfo::new("alice", ["dev"]), Some("10.0.0.1"), "/x", "id").unwrap();
    assert_eq!(
        list(&headers),
        [
            "audit-id: id",
            "x-forwarded-for: 10.0.0.1",
            "x-forwarded-proto: https",
            "x-forwarded-uri: /x",
            "x-remote-group: dev",
            "x-remote-user: alice"
        ]
    );
}

#[test]
fn identity_has_one_header_per_attribute() {
    let mut user = UserInfo::new("alice", ["a", "b"]);
    user.uid = "u-1".into();
    user.extra = BTreeMap::from([
        ("authentication.kubernetes.io/credential-id".into(), vec!["X=1".into()]),
        ("scopes".into(), vec!["r".into(), "w".into()]),
        ("100%".into(), vec!["x".into()]),
    ]);
    let mut headers = HeaderMap::new();
    add_proxy_headers(&mut headers, &user, None, "/x", "").unwrap();
    assert_eq!(
        list(&headers),
        [
            "x-forwarded-proto: https",
            "x-forwarded-uri: /x",
            "x-remote-extra-100%25: x",
            "x-remote-extra-authentication.kubernetes.io%2fcredential-id: X=1",
            "x-remote-extra-scopes: r",
            "x-remote-extra-scopes: w",
            "x-remote-group: a",
            "x-remote-group: b",
            "x-remote-uid: u-1",
            "x-remote-user: alice"
        ]
    );
    user.uid.clear();
    let mut headers = HeaderMap::new();
    add_proxy_headers(&mut headers, &user, None, "/x", "").unwrap();
    assert!(!headers.contains_key("x-remote-uid"));
}

#[test]
fn a_name_with_a_line_break_is_refused_and_never_sent() {
    let user = UserInfo::new("alice\r\nX-Remote-Group: system:masters", ["dev"]);
    assert!(add_proxy_headers(&mut HeaderMap::new(), &user, None, "/x", "").is_err());
    let mut headers = HeaderMap::new();
    add_proxy_headers(&mut headers, &UserInfo::new("jürgen", ["dev"]), None, "/x", "").unwrap();
    assert_eq!(headers["x-remote-user"].as_bytes(), "jürgen".as_bytes());
}

#[test]
fn the_client_is_appended_to_the_forwarding_list_and_the_rest_is_overwritten() {
    let mut headers = map(&[
        ("X-Forwarded-For", "1.1.1.1"),
        ("X-Forwarded-For", "2.2.2.2"),
        ("X-Forwarded-Proto", "gopher"),
        ("X-Forwarded-Uri", "/lie"),
        ("X-Forwarded-Host", "lie"),
        ("Host", "front"),
    ]);
    add_proxy_headers(
        &mut headers,
        &UserInfo::new("alice", ["dev"]),
        Some("::ffff:10.0.0.1"),
        "/apis/g/v/",
        "",
    )
    .unwrap();
    set_target(&mut headers, &HeaderValue::from_static("b:8443"));
    assert_eq!(
        list(&headers),
        [
            "x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.0.0.1",
            "x-forwarded-host: b:8443",
            "x-forwarded-proto: https",
            "x-forwarded-uri: /apis/g/v/",
            "x-remote-group: dev",
            "x-remote-user: alice"
        ]
    );
}

#[test]
fn the_forwarded_uri_is_clean() {
    for (path, uri) in [
        ("/apis/g/v/things//t", "/apis/g/v/things/t"),
        ("/apis/g/v/things/../things/t", "/apis/g/v/things/t"),
        ("/apis/g/v/./.hidden//", "/apis/g/v/.hidden/"),
        ("/", "/"),
    ] {
        let mut headers = HeaderMap::new();
        add_proxy_headers(&mut headers, &UserInfo::new("alice", ["dev"]), None, path, "").unwrap();
        assert_eq!(headers["x-forwarded-uri"], uri, "{path}");
    }
}

#[test]
fn an_upgrade_is_a_token_of_connection_and_a_known_protocol() {
    let to = |text| Upgrade::To(HeaderValue::from_static(text));
    let table = [
        (vec![("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket")], Some(to("websocket"))),
        (vec![("Connection", "UPGRADE"), ("Upgrade", "SPDY/3.1")], Some(to("SPDY/3.1"))),
        (vec![("Connection", "keep-alive")], Some(Upgrade::None)),
        (vec![("Upgrade", "websocket")], Some(Upgrade::None)),
        (vec![("Connection", "not-upgrade"), ("Upgrade", "websocket")], Some(Upgrade::None)),
        (vec![("Connection", "Upgrade"), ("Upgrade", "h2c")], None),
        (vec![("Connection", "Upgrade")], None),
        (vec![("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Upgrade", "h2c")], None),
    ];
    for (input, want) in table {
        let got = requested_upgrade(&map(&input));
        match want {
            Some(want) => assert_eq!(got, want, "{input:?}"),
            None => assert!(matches!(got, Upgrade::Refused(_)), "{input:?}"),
        }
    }
}

#[test]
fn answers_lose_cors_audit_and_hop_by_hop_headers() {
    let mut headers = map(&[
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Allow-Methods", "*"),
        ("Access-Control-Allow-Headers", "*"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Expose-Headers", "x"),
        ("Audit-ID", "theirs"),
        ("Connection", "close, x-hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "x"),
        ("Warning", "299 - \"w\""),
    ]);
    clean_response(&mut headers, &HeaderValue::from_static("b:1"));
    assert_eq!(list(&headers), ["access-control-expose-headers: x", "warning: 299 - \"w\""]);
}

#[test]
fn a_location_on_the_same_host_becomes_absolute() {
    let table = [
        ("/x/y", "https://b:1/x/y"),
        ("http://b:1/x", "https://b:1/x"),
        ("https://elsewhere/x", "https://elsewhere/x"),
        ("https://b:11/x", "https://b:11/x"),
        ("relative", "relative"),
        ("//elsewhere/x", "//elsewhere/x"),
    ];
    for (input, want) in table {
        let mut headers = map(&[("Location", input)]);
        clean_response(&mut headers, &HeaderValue::from_static("b:1"));
        assert_eq!(headers["location"], want, "{input}");
    }
}
