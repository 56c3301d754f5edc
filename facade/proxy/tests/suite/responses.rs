//! Responses as the client receives them, redirects included.

use tokio::sync::mpsc;

use crate::backend::{Backend, EVENT_TIMEOUT, Reply, ok, with_status};
use crate::front::{FLUNDERS, Setup};

#[tokio::test]
async fn redirects_are_not_passed_on_and_never_followed() {
    // Status, Location, code for the client, and whether Location is forwarded.
    let table = [
        ("301 M", true, 502),
        ("302 F", true, 502),
        ("304 N", true, 502),
        ("307 T", true, 502),
        ("304 N", false, 304),
        ("201 C", true, 201),
    ];
    for (status, location, want) in table {
        let mut backend = Backend::start(move |_| {
            let location = if location { "location: /elsewhere\r\nx-backend: 1\r\n" } else { "" };
            with_status(status, location, "")
        })
        .await;
        let front = Setup::to(&[&backend]).start().await;
        let answer = front.get(FLUNDERS).await;
        assert_eq!(answer.status.as_u16(), want, "{status}");
        backend.next_request().await;
        assert!(!backend.has_unread_request(), "{status}: a second request was sent");
        match want {
            502 => {
                assert!(
                    !answer.headers.contains_key("location") && !answer.headers.contains_key("x-backend")
                );
                assert_eq!(
                    answer.failure().message,
                    "the backend attempted to redirect this request, which is not permitted"
                );
            }
            201 => assert_eq!(answer.headers["location"], format!("https://{}/elsewhere", backend.address)),
            _ => {}
        }
    }
}

#[tokio::test]
async fn redirects_pass_if_allowed() {
    let backend = Backend::start(|_| with_status("301 M", "location: https://other/x\r\n", "")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.limits.reject_redirects = false;
    let answer = setup.start().await.get(FLUNDERS).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["location"]),
        (301, &"https://other/x".parse().unwrap())
    );
}

#[tokio::test]
async fn cors_and_audit_headers_of_a_backend_are_dropped() {
    let backend = Backend::start(|_| {
        let headers =
            "access-control-allow-origin: *\r\naudit-id: theirs\r\nwarning: 299 - \"w\"\r\nkeep-alive: x\r\n";
        with_status("200 OK", headers, "{}")
    })
    .await;
    let answer = Setup::to(&[&backend]).start().await.get(FLUNDERS).await;
    assert_eq!(answer.headers["warning"], "299 - \"w\"");
    for gone in ["access-control-allow-origin", "audit-id", "keep-alive"] {
        assert!(!answer.headers.contains_key(gone), "{gone}");
    }
}

#[tokio::test]
async fn head_has_the_length_and_no_body_and_the_connection_is_used_again() {
    let mut backend = Backend::start(|seen| match seen.line.starts_with("HEAD") {
        true => Reply::Bytes("HTTP/1.1 200 OK\r\ncontent-length: 17\r\nx-own: 1\r\n\r\n".into()),
        false => ok("x"),
    })
    .await;
    let front = Setup::to(&[&backend]).start().await;
    let answer = front.send("HEAD", FLUNDERS, &[], "").await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, ""));
    assert_eq!(
        (&answer.headers["content-length"], &answer.headers["x-own"]),
        (&"17".parse().unwrap(), &"1".parse().unwrap())
    );
    assert_eq!(front.get(FLUNDERS).await.body, "x");
    backend.next_request().await;
    assert_eq!(backend.next_request().await.connection, 0);
}

#[tokio::test]
async fn each_piece_of_a_stream_arrives_before_the_next_is_sent() {
    let (pieces, source) = mpsc::channel(1);
    let source = std::sync::Mutex::new(Some(source));
    let backend = Backend::start(move |_| Reply::Pieces(source.lock().unwrap().take().unwrap())).await;
    let front = Setup::to(&[&backend]).start().await;
    let mut raw = front.raw().await;
    raw.write(&format!("GET {FLUNDERS}?watch=true HTTP/1.1\r\nHost: front\r\n\r\n")).await;
    pieces.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".into()).await.unwrap();
    raw.read_until("\r\n\r\n").await;
    for n in 0..3 {
        pieces.send(format!("9\r\n{{\"n\": {n}}}\n\r\n")).await.unwrap();
        raw.read_until(&format!("{{\"n\": {n}}}\n")).await;
    }
    pieces.send("0\r\n\r\n".into()).await.unwrap();
    raw.read_until("0\r\n\r\n").await;
}

#[tokio::test]
async fn trailers_and_informational_responses_are_handled() {
    let backend = Backend::start(|_| {
        Reply::Bytes(
            "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\
             trailer: x-sum\r\n\r\n2\r\n{}\r\n0\r\nx-sum: 7\r\n\r\n"
                .into(),
        )
    })
    .await;
    let front = Setup::to(&[&backend]).start().await;
    let answer = front.send("GET", FLUNDERS, &[("te", "trailers")], "").await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, "{}"));
    assert_eq!(answer.trailers.unwrap()["x-sum"], "7");
}

#[tokio::test]
async fn a_truncated_response_is_truncated_for_the_client() {
    let backend =
        Backend::start(|_| Reply::Close("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789".into()))
            .await;
    let front = Setup::to(&[&backend]).start().await;
    let mut raw = front.raw().await;
    raw.write(&format!("GET {FLUNDERS} HTTP/1.1\r\nHost: front\r\n\r\n")).await;
    let all = raw.read_to_end().await;
    assert!(all.starts_with("HTTP/1.1 200 ") && all.ends_with("\r\n\r\n0123456789"), "{all}");
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_request_at_the_backend() {
    for answered in [false, true] {
        let (held, mut released) = mpsc::channel::<()>(1);
        let (pieces, source) = mpsc::channel(1);
        let source = std::sync::Mutex::new(Some(source));
        let held = std::sync::Mutex::new(Some(held));
        let mut backend = Backend::start(move |_| match answered {
            false => Reply::Hang(held.lock().unwrap().take().unwrap()),
            true => Reply::Pieces(source.lock().unwrap().take().unwrap()),
        })
        .await;
        let front = Setup::to(&[&backend]).start().await;
        let mut raw = front.raw().await;
        raw.write(&format!("GET {FLUNDERS} HTTP/1.1\r\nHost: front\r\n\r\n")).await;
        backend.next_request().await;
        if answered {
            pieces.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n12345".into()).await.unwrap();
            raw.read_until("12345").await;
            drop(raw);
            let transport_empties = async {
                while front.upstream_in_flight() > 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(EVENT_TIMEOUT, transport_empties).await.expect("still under way");
        } else {
            drop(raw);
            let closed = tokio::time::timeout(EVENT_TIMEOUT, released.recv()).await;
            assert_eq!(closed.expect("the backend still waits"), None);
        }
    }
}

#[tokio::test]
async fn a_large_response_passes_completely() {
    let body = "x".repeat(3_000_000);
    let sent = body.clone();
    let backend = Backend::start(move |_| ok(&sent)).await;
    let answer = Setup::to(&[&backend]).start().await.get(FLUNDERS).await;
    assert_eq!(
        (answer.body.len(), &answer.headers["content-length"]),
        (3_000_000, &"3000000".parse().unwrap())
    );
    assert!(answer.body == body);
}
