//! Headers that a backend receives: no forged identity, no hop-by-hop header, no bearer token.

use portico_machinery::UserInfo;

use crate::backend::{Backend, NAME, ok};
use crate::front::{DISCOVERY, FLUNDERS, Setup};

#[tokio::test]
async fn a_backend_sees_the_authenticated_identity_and_where_the_request_came_from() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    assert_eq!(
        front.send("GET", &format!("{FLUNDERS}/"), &[("user-agent", "kubectl")], "").await.status,
        200
    );
    let seen = backend.next_request().await;
    let authority = backend.address.to_string();
    assert_eq!(seen.line, format!("GET {FLUNDERS}/ HTTP/1.1"));
    assert_eq!(seen.all("host"), [authority.as_str()]);
    assert_eq!(seen.all("x-remote-user"), ["alice"]);
    assert_eq!(seen.all("x-remote-uid"), ["uid-alice"]);
    assert_eq!(seen.all("x-remote-group"), ["dev", "system:authenticated"]);
    assert_eq!(seen.all("x-remote-extra-example.com%2fscopes"), ["read"]);
    assert_eq!(seen.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.all("x-forwarded-host"), [authority.as_str()]);
    assert_eq!(seen.all("x-forwarded-proto"), ["https"]);
    assert_eq!(seen.all("x-forwarded-uri"), [format!("{FLUNDERS}/")]);
    assert_eq!(seen.all("audit-id"), ["audit-1"]);
    assert_eq!(seen.all("user-agent"), ["kubectl"]);
    assert_eq!(seen.sni.as_deref(), Some(NAME));
    assert_eq!(seen.all("content-length"), [""; 0]);
}

#[tokio::test]
async fn spoofed_identities_and_credentials_never_arrive() {
    let mut backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.user = Some(UserInfo::new("bob", ["dev"]));
    let front = setup.start().await;
    let mut raw = front.raw().await;
    raw.write(&format!(
        "GET {FLUNDERS} HTTP/1.1\r\nHost: front\r\nX-Remote-User: root\r\nx-REMOTE-gROUP: system:masters\r\n\
         X-REMOTE-UID: 0\r\nX-Remote-Extra-Foo: bar\r\nAuthorization: Bearer secret\r\nImpersonate-User: zoe\r\n\
         IMPERSONATE-EXTRA-A: b\r\nAudit-Id: mine\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: gopher\r\n\
         Connection: close, X-Remote-User, X-Remote-Group, Audit-ID\r\n\r\n"
    ))
    .await;
    assert!(raw.read_to_end().await.starts_with("HTTP/1.1 200 "));
    let seen = backend.next_request().await;
    assert_eq!(seen.all("x-remote-user"), ["bob"]);
    assert_eq!(seen.all("x-remote-group"), ["dev"]);
    assert_eq!(seen.all("x-remote-uid"), [""; 0]);
    assert_eq!(seen.all("audit-id"), ["audit-1"]);
    assert_eq!(seen.all("x-forwarded-for"), ["9.9.9.9, 127.0.0.1"]);
    assert_eq!(seen.all("x-forwarded-proto"), ["https"]);
    for gone in
        ["x-remote-extra-foo", "authorization", "impersonate-user", "impersonate-extra-a", "connection"]
    {
        assert_eq!(seen.all(gone), [""; 0], "{gone}");
    }
}

#[tokio::test]
async fn an_identity_in_trailers_does_not_arrive_either() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let mut raw = front.raw().await;
    raw.write(&format!(
        "POST {FLUNDERS} HTTP/1.1\r\nHost: front\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\
         Trailer: x-remote-group, x-sum\r\n\r\n2\r\n{{}}\r\n0\r\nx-remote-group: system:masters\r\nx-sum: 7\r\n\r\n"
    ))
    .await;
    assert!(raw.read_to_end().await.starts_with("HTTP/1.1 200 "));
    let body = String::from_utf8(backend.next_request().await.body).unwrap();
    assert!(body.starts_with("2\r\n{}\r\n0\r\n") && body.contains("x-sum: 7"), "{body}");
    assert!(!body.contains("system:masters"), "{body}");
}

#[tokio::test]
async fn paths_and_queries_arrive_in_upstreams_form() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let table = [
        (format!("{FLUNDERS}/a%20b"), format!("{FLUNDERS}/a%20b")),
        (format!("{FLUNDERS}/a%2Fb"), format!("{FLUNDERS}/a/b")),
        (format!("{FLUNDERS}?x=1&b&a=2"), format!("{FLUNDERS}?a=2&b=&x=1")),
        (format!("{DISCOVERY}/"), format!("{DISCOVERY}/")),
    ];
    for (requested, arrived) in table {
        front.get(&requested).await;
        assert_eq!(backend.next_request().await.target(), arrived);
    }
}

#[tokio::test]
async fn a_body_and_its_type_arrive_unchanged_with_its_length() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    front.send("PATCH", &format!("{FLUNDERS}/one"), &headers, "{not json").await;
    let seen = backend.next_request().await;
    assert_eq!((seen.all("content-type"), seen.all("content-length")), (vec![headers[0].1], vec!["9"]));
    assert_eq!((seen.body.as_slice(), seen.all("transfer-encoding").len()), (&b"{not json"[..], 0));
    front.send("POST", FLUNDERS, &[("content-length", "0")], "").await;
    assert_eq!(backend.next_request().await.all("content-length"), ["0"]);
}

#[tokio::test]
async fn a_user_name_that_is_no_valid_header_is_refused() {
    let mut backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.user = Some(UserInfo::new("a\r\nX-Remote-Group: system:masters", ["dev"]));
    assert_eq!(setup.start().await.get(FLUNDERS).await.failure().code, 500);
    assert!(!backend.has_unread_request());
}
