//! Upgrades: forwarded and refused ones (CVE-2018-1002105, CVE-2020-8559), and their identity headers.

use std::time::Duration;

use portico_machinery::route::Ejection;

use crate::backend::{Backend, EVENT_TIMEOUT, Reply, ok, with_status};
use crate::front::{DISCOVERY, FLUNDERS, RawClient, Setup};

fn upgrade_request(path: &str, protocol: &str, connection: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: front\r\nConnection: {connection}\r\nUpgrade: {protocol}\r\n{more}\r\n"
    )
}

fn switching_response(protocol: &str, early: &str) -> Reply {
    Reply::Echo(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Accept: x\r\n\r\n{early}"
    ))
}

async fn assert_echo(raw: &mut RawClient, words: &str) {
    raw.write(words).await;
    raw.read_until(words).await;
}

#[tokio::test]
async fn websocket_and_spdy_reach_the_backend_with_the_callers_identity() {
    for (protocol, connection) in [("websocket", "Upgrade"), ("SPDY/3.1", "keep-alive, upgrade")] {
        let mut backend = Backend::start(move |_| switching_response(protocol, "early")).await;
        let front = Setup::to(&[&backend]).start().await;
        let mut raw = front.raw().await;
        let spoof = "X-Remote-User: root\r\nAuthorization: Bearer secret\r\nSec-WebSocket-Key: k\r\n\
                     Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0\r\n";
        raw.write(&upgrade_request(FLUNDERS, protocol, connection, spoof)).await;
        let head = raw.read_until("early").await.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(head.contains(&format!("upgrade: {}\r\n", protocol.to_ascii_lowercase())), "{head}");
        assert!(
            head.contains("connection: upgrade\r\n") && head.contains("sec-websocket-accept: x"),
            "{head}"
        );
        let seen = backend.next_request().await;
        assert_eq!((seen.all("x-remote-user"), seen.all("x-remote-uid")), (vec!["alice"], vec!["uid-alice"]));
        assert_eq!((seen.all("connection"), seen.all("upgrade")), (vec!["Upgrade"], vec![protocol]));
        assert_eq!((seen.all("sec-websocket-key"), seen.all("authorization").len()), (vec!["k"], 0));
        assert_eq!(seen.all("sec-websocket-protocol"), ["v5.channel.k8s.io"]);
        for words in ["hello there", "and again"] {
            assert_echo(&mut raw, words).await;
        }
        assert_eq!(front.metric("portico_proxy_upgraded_connections"), "1");
    }
}

#[tokio::test]
async fn when_one_side_ends_the_other_ends_too() {
    let mut backend = Backend::start(|_| switching_response("websocket", "x")).await;
    let front = Setup::to(&[&backend]).start().await;
    let mut raw = front.raw().await;
    raw.write(&upgrade_request(FLUNDERS, "websocket", "Upgrade", "")).await;
    raw.read_until("\r\n\r\nx").await;
    backend.next_request().await;
    backend.tasks.shutdown(Duration::from_secs(5)).await;
    assert_eq!(raw.read_to_end().await, "");
    let gone = async {
        while front.metric("portico_proxy_upgraded_connections") != "0" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(EVENT_TIMEOUT, gone).await.expect("the tunnel stays");
}

#[tokio::test]
async fn a_refused_upgrade_is_passed_on_whole_and_then_both_connections_end() {
    for code in [400, 403, 500] {
        let mut backend =
            Backend::start(move |_| with_status(&format!("{code} No"), "x-own: 1\r\n", "the reason why"))
                .await;
        let front = Setup::to(&[&backend]).start().await;
        let mut raw = front.raw().await;
        // The second request is pipelined behind the first: it must not reach the backend.
        let smuggled = format!("GET {FLUNDERS}/smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
        raw.write(&(upgrade_request(FLUNDERS, "websocket", "Upgrade", "") + &smuggled)).await;
        let all = raw.read_to_end().await;
        assert!(
            all.starts_with(&format!("HTTP/1.1 {code} ")) && all.ends_with("\r\n\r\nthe reason why"),
            "{all}"
        );
        assert!(all.contains("x-own: 1"));
        assert_eq!(backend.next_request().await.target(), FLUNDERS);
        assert!(!backend.has_unread_request(), "a second request reached the backend");
        while front.upstream_in_flight() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(front.get(FLUNDERS).await.status, code);
        assert_eq!(backend.next_request().await.connection, 1, "the refused connection is not used again");
    }
}

#[tokio::test]
async fn an_upgrade_answered_below_400_is_a_local_503() {
    for status in ["200 OK", "204 N", "300 M", "302 F", "307 T"] {
        let mut backend =
            Backend::start(move |_| with_status(status, "location: https://evil/\r\nx-own: 1\r\n", "")).await;
        let front = Setup::to(&[&backend]).start().await;
        let mut raw = front.raw().await;
        raw.write(&upgrade_request(FLUNDERS, "websocket", "Upgrade", "")).await;
        let all = raw.read_until("}\n").await;
        assert!(all.starts_with("HTTP/1.1 503 "), "{status}: {all}");
        let words = format!("invalid upgrade response: status code {}", status.split(' ').next().unwrap());
        assert!(all.contains(&words), "{all}");
        assert!(!all.contains("location") && !all.contains("x-own"), "{all}");
        backend.next_request().await;
        assert!(!backend.has_unread_request());
    }
}

#[tokio::test]
async fn a_switch_to_another_protocol_is_a_503() {
    let backend = Backend::start(|_| switching_response("h2c", "")).await;
    let front = Setup::to(&[&backend]).start().await;
    let mut raw = front.raw().await;
    raw.write(&upgrade_request(FLUNDERS, "websocket", "Upgrade", "")).await;
    assert!(raw.read_until("}\n").await.starts_with("HTTP/1.1 503 "));
}

#[tokio::test]
async fn an_unexpected_switch_is_a_503() {
    let backend = Backend::start(|_| switching_response("websocket", "")).await;
    let front = Setup::to(&[&backend]).start().await;
    assert_eq!(front.get(FLUNDERS).await.failure().code, 503);
}

#[tokio::test]
async fn unknown_protocols_and_discovery_paths_are_refused_before_the_backend_is_called() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    for (path, protocol) in
        [(FLUNDERS, "h2c"), (FLUNDERS, "tls/1.2"), (DISCOVERY, "websocket"), (DISCOVERY, "SPDY/3.1")]
    {
        let mut raw = front.raw().await;
        raw.write(&upgrade_request(path, protocol, "Upgrade", "")).await;
        assert!(raw.read_until("}\n").await.starts_with("HTTP/1.1 400 "), "{path} {protocol}");
    }
    assert!(!backend.has_unread_request());
}

#[tokio::test]
async fn an_upgrade_verifies_the_backends_name_like_any_request() {
    let mut backend =
        Backend::with_names(&["other.wardle.svc"], |_| switching_response("websocket", "")).await;
    let front = Setup::to(&[&backend]).start().await;
    let mut raw = front.raw().await;
    raw.write(&upgrade_request(FLUNDERS, "websocket", "Upgrade", "")).await;
    let all = raw.read_until("}\n").await;
    assert!(all.starts_with("HTTP/1.1 503 ") && all.contains("TLSFailed"), "{all}");
    assert!(!backend.has_unread_request());
}

#[tokio::test]
async fn an_unreachable_address_is_ejected_for_upgrades() {
    let backend = Backend::start(|_| switching_response("websocket", "x")).await;
    let reserve = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = reserve.local_addr().unwrap();
    drop(reserve);
    let mut setup = Setup::to_addresses(&[dead, backend.address], backend.authority.cert_pem());
    // The circuit must not be the cause.
    setup.limits.circuit_failures = 1000;
    setup.backend().policy.ejection = Some(Ejection { failures: 2, time: Duration::from_secs(60) });
    let front = setup.start().await;
    for _ in 0..8 {
        let mut raw = front.raw().await;
        raw.write(&upgrade_request(FLUNDERS, "websocket", "Upgrade", "")).await;
        raw.read_until("\r\n\r\nx").await;
    }
    assert_eq!(front.metric("portico_proxy_dials_total{result=\"dial\"}"), "2");
    assert_eq!(front.metric("portico_proxy_ejections_total"), "1");
}

#[tokio::test]
async fn addresses_that_fail_upgrades_are_ejected_unless_all_are() {
    let bad = Backend::start(|_| with_status("503 Service Unavailable", "", "later")).await;
    let mut setup = Setup::to(&[&bad]);
    setup.backend().policy.ejection = Some(Ejection { failures: 2, time: Duration::from_secs(60) });
    let front = setup.start().await;
    for _ in 0..4 {
        let mut raw = front.raw().await;
        raw.write(&upgrade_request(FLUNDERS, "websocket", "Upgrade", "")).await;
        assert!(raw.read_to_end().await.starts_with("HTTP/1.1 503 "));
    }
    assert_eq!(front.metric("portico_proxy_ejections_total"), "1");
}
