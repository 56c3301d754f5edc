//! Heads and bodies that are sent as slowly as possible.

use std::time::Duration;

use portico_tests::http2::{self, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, frame, head, literal};
use portico_tests::{Launch, Portico, WAIT_LIMIT};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::bystander::Bystander;

const CONNECTIONS: usize = 200;

fn launch_with_short_timeouts() -> Launch {
    Launch::new().args(&[
        "--request-header-timeout",
        "500ms",
        "--stalled-write-timeout",
        "500ms",
        "--request-timeout",
        "1s",
    ])
}

/// Returns the bearer token of the administrator, as an encoded header.
fn admin() -> Vec<u8> {
    literal("authorization", "Bearer admin-token")
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_heads_time_out_and_other_clients_are_served() {
    let portico = launch_with_short_timeouts().start().await;
    let bystander = Bystander::start(&portico);
    let before = portico.resident_kib();
    let mut slow = Vec::new();
    for _ in 0..CONNECTIONS {
        let (frames, mut sink) = http2::open(&portico.anonymous(), &[]).await.unwrap();
        sink.write_all(&frame(HEADERS, 0, 1, &head("GET", "/version"))).await.unwrap();
        sink.flush().await.unwrap();
        slow.push((frames, sink));
    }
    let cost = portico.resident_kib().saturating_sub(before);
    assert!(cost < CONNECTIONS as u64 * 256, "{cost} KiB for {CONNECTIONS} connections");
    for (frames, sink) in slow {
        frames.read_until_closed(WAIT_LIMIT).await;
        drop(sink);
    }
    bystander.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_unauthenticated_connections_are_replaced_by_new_ones() {
    let portico = Launch::new().args(&["--max-connections", "4"]).start().await;
    let mut authenticated = portico.admin().connect().await.unwrap();
    assert_eq!(authenticated.get("/version").await.unwrap().status, 200);
    let mut idle = Vec::new();
    // The server closes idle connections after 90 seconds.
    let served = tokio::time::timeout(Duration::from_secs(60), async {
        for _ in 0..8 {
            idle.push(portico.anonymous().dial().await.unwrap());
        }
        portico.admin().get("/version").await
    });
    assert_eq!(served.await.expect("the idle connections make room").status, 200);
    assert_eq!(
        authenticated.get("/version").await.unwrap().status,
        200,
        "the connection of an authenticated client stays open"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ignore_a_goaway_are_replaced_by_new_ones() {
    let portico = Launch::new().args(&["--max-connections", "4"]).start().await;
    let mut going = Vec::new();
    // The server closes idle connections after 90 seconds.
    let served = tokio::time::timeout(Duration::from_secs(60), async {
        for _ in 0..8 {
            let (mut frames, mut sink) = http2::open(&portico.anonymous(), &[]).await.unwrap();
            let request = frame(HEADERS, END_HEADERS | END_STREAM, 1, &head("GET", "/version"));
            sink.write_all(&request).await.unwrap();
            sink.flush().await.unwrap();
            while frames.next().await.expect("a GOAWAY").kind != http2::GOAWAY {}
            going.push((frames, sink));
        }
        portico.admin().get("/version").await
    });
    assert_eq!(served.await.expect("the connections make room").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_ends_at_the_requests_deadline() {
    let portico = launch_with_short_timeouts().start().await;
    let (mut frames, mut sink) = http2::open(&portico.anonymous(), &[]).await.unwrap();
    let mut request = head("POST", "/api/v1/namespaces/default/configmaps");
    request.extend(admin());
    request.extend(literal("content-type", "application/json"));
    sink.write_all(&frame(HEADERS, END_HEADERS, 1, &request)).await.unwrap();
    let dribble = async {
        let mut beat = tokio::time::interval(Duration::from_millis(50));
        loop {
            beat.tick().await;
            if sink.write_all(&frame(DATA, 0, 1, b" ")).await.is_err() || sink.flush().await.is_err() {
                return;
            }
        }
    };
    let ended = async {
        while let Some(frame) = frames.next().await {
            let last = frame.flags & END_STREAM != 0 && [HEADERS, DATA].contains(&frame.kind);
            if frame.stream == 1 && (frame.kind == RST_STREAM || last) {
                return;
            }
        }
    };
    let first = async {
        tokio::select! { () = dribble => {} () = ended => {} }
    };
    tokio::time::timeout(WAIT_LIMIT, first).await.expect("the request ends");
}

/// CVE-2019-9511, CVE-2019-9517: many requests without a flow-control window for the responses.
#[tokio::test(flavor = "multi_thread")]
async fn unread_responses_time_out_and_cost_little() {
    let portico = launch_with_short_timeouts().start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for at in 0..8 {
        let map = json!({"metadata": {"name": format!("m{at}")}, "data": {"a": "x".repeat(512 << 10)}});
        assert_eq!(portico.admin().post(maps, &map).await.status, 201);
    }
    let bystander = Bystander::start(&portico);
    let before = portico.resident_kib();
    // A window of zero.
    let (frames, mut sink) = http2::open(&portico.anonymous(), &[(4, 0)]).await.unwrap();
    let mut request = head("GET", maps);
    request.extend(admin());
    for at in 0..100 {
        sink.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 2 * at + 1, &request)).await.unwrap();
    }
    sink.flush().await.unwrap();
    let resets = resets(frames, 100).await;
    assert_eq!(resets, 100);
    let grown = portico.peak_kib().saturating_sub(before);
    // Less than half of the requested data (400 MiB): the data in transit between both halves of the process.
    assert!(grown < 192 << 10, "{grown} KiB");
    bystander.finish().await;
}

/// Counts the streams that the server resets, up to `most`.
async fn resets(mut frames: http2::FrameReader, most: usize) -> usize {
    let mut count = 0;
    let all = async {
        while let Some(frame) = frames.next().await {
            count += usize::from(frame.kind == RST_STREAM);
            if count == most {
                return;
            }
        }
    };
    // Resets before the timeout are counted.
    let _late = tokio::time::timeout(WAIT_LIMIT, all).await;
    count
}

/// Many connections without data: both listeners close them after the time for a head.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_send_nothing_are_closed_on_both_listeners() {
    let portico: Portico =
        launch_with_short_timeouts().args(&["--tls-handshake-timeout", "500ms"]).start().await;
    for address in [portico.https(), portico.grpc()] {
        let mut silent = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut rest = Vec::new();
        let read = tokio::io::AsyncReadExt::read_to_end(&mut silent, &mut rest);
        assert!(
            tokio::time::timeout(WAIT_LIMIT, read).await.is_ok(),
            "the connection stays open without a handshake"
        );
    }
}
