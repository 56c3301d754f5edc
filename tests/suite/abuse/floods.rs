//! Endless sequences of frames.

use std::time::Duration;

use portico_tests::http::Http;
use portico_tests::http2::{self, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, frame};
use portico_tests::http2::{PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, head, literal};
use portico_tests::{Portico, WAIT_LIMIT, wait_until};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::bystander::Bystander;

/// Maximum memory growth of a flood, in KiB.
const MAX_GROWTH_KIB: u64 = 48 << 10;
/// Bytes of a complete flood: a connection that accepted all of it was not closed.
const FLOOD_BYTES: usize = 256 << 20;
/// Bytes of one write.
const WRITE_BYTES: usize = 64 << 10;

/// A flood: the frames of each step, by its number.
struct Flood {
    name: &'static str,
    /// Frames before the flood.
    first: Vec<u8>,
    step: fn(u32) -> Vec<u8>,
    /// True if the client reads the server's frames.
    reads: bool,
}

/// Returns the number of the stream of a step.
fn stream(step: u32) -> u32 {
    2 * step + 1
}

fn floods() -> Vec<Flood> {
    let flood = |name, step| Flood { name, first: Vec::new(), step, reads: true };
    let request = |flags, method| frame(HEADERS, flags, 1, &head(method, "/api/v1/namespaces"));
    let unread = |name, step| Flood { reads: false, ..flood(name, step) };
    let ping: fn(u32) -> Vec<u8> = |_| frame(PING, 0, 0, &[7; 8]);
    let settings: fn(u32) -> Vec<u8> = |_| frame(SETTINGS, 0, 0, &[]);
    vec![
        flood("CVE-2023-44487: streams that are reset at once", |step| {
            let mut frames = frame(HEADERS, END_HEADERS | END_STREAM, stream(step), &head("GET", "/version"));
            frames.extend(frame(RST_STREAM, 0, stream(step), &[0, 0, 0, 8]));
            frames
        }),
        Flood {
            first: request(0, "GET"),
            ..flood("CVE-2023-45288: a head that goes on without end", |step| {
                frame(CONTINUATION, 0, 1, &literal(&format!("x-{step}"), &"a".repeat(100)))
            })
        },
        Flood {
            first: request(0, "GET"),
            ..flood("CVE-2024-27316: a head of nothing that goes on", |_| frame(CONTINUATION, 0, 1, &[]))
        },
        flood("CVE-2019-9512: pings", ping),
        unread("CVE-2019-9512: pings whose answers are not read", ping),
        flood("CVE-2019-9515: settings", settings),
        unread("CVE-2019-9515: settings whose answers are not read", settings),
        flood("CVE-2019-9513: priorities", |step| frame(PRIORITY, 0, stream(step), &[0, 0, 0, 0, 9])),
        flood("window updates of one byte", |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        flood("frames of unknown types", |_| frame(0xfa, 0, 0, &[])),
        Flood {
            first: request(END_HEADERS, "POST"),
            ..flood("CVE-2019-9518: empty pieces of a body", |_| frame(DATA, 0, 1, &[]))
        },
        flood("CVE-2019-9514: requests that are none", |step| {
            frame(HEADERS, END_HEADERS | END_STREAM, stream(step), &literal(":nonsense", "x"))
        }),
    ]
}

/// Sends a flood; returns true if the server closed the connection before the end.
async fn send_flood(http: &Http, flood: &Flood) -> bool {
    let (mut frames, mut sink) = http2::open(http, &[]).await.unwrap();
    let writing = async {
        sink.write_all(&flood.first).await?;
        let (mut piece, mut sent, mut steps) = (Vec::new(), 0, 0..1 << 30);
        while sent < FLOOD_BYTES {
            piece.clear();
            while piece.len() < WRITE_BYTES {
                piece.extend((flood.step)(steps.next().unwrap()));
            }
            sink.write_all(&piece).await?;
            sink.flush().await?;
            sent += piece.len();
        }
        Ok::<_, std::io::Error>(())
    };
    let reading = async { while flood.reads && frames.next().await.is_some() {} };
    // The write reports the end, even if nothing is read.
    let (written, ()) = tokio::join!(writing, reading);
    written.is_err()
}

async fn check_floods(portico: &Portico, http: &Http) {
    for flood in floods() {
        let before = portico.resident_kib();
        let bystander = Bystander::start(portico);
        let end = tokio::time::timeout(WAIT_LIMIT, send_flood(http, &flood)).await;
        assert_ne!(end, Ok(false), "{}: the server accepted the whole flood", flood.name);
        // The server may block a client that does not read, which stops the flood as well.
        assert!(end.is_ok() || !flood.reads, "{}: the server did not stop the flood", flood.name);
        let grown = portico.resident_kib().saturating_sub(before);
        assert!(grown < MAX_GROWTH_KIB, "{}: {grown} KiB", flood.name);
        bystander.finish().await;
    }
    assert!(!portico.log().contains("panicked"), "{}", portico.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_frames_ends_with_its_connection_at_the_facade() {
    let portico = Portico::start().await;
    check_floods(&portico, &portico.anonymous()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_frames_ends_with_its_connection_at_the_control_service() {
    let portico = Portico::start().await;
    check_floods(&portico, &Http::new(portico.grpc(), portico.ca())).await;
}

/// CVE-2016-6581 and similar ones: an entry of the header table that a small head refers to thousands of times.
#[tokio::test(flavor = "multi_thread")]
async fn a_header_bomb_is_refused_before_it_is_expanded() {
    let portico = Portico::start().await;
    for http in [portico.anonymous(), Http::new(portico.grpc(), portico.ca())] {
        let before = portico.resident_kib();
        let (frames, mut sink) = http2::open(&http, &[]).await.unwrap();
        for step in 0..200 {
            let mut bomb = head("GET", "/version");
            // 32 names of one entry each (RFC 7541, section 6.2.1), then each of them 400 times (section 6.1).
            if step == 0 {
                for entry in 0..32 {
                    let mut header = literal(&format!("x-{entry:02}"), &"a".repeat(80));
                    header[0] = 0x40;
                    bomb.extend(header);
                }
            }
            bomb.extend((0..12_800).map(|n| 0x80 | (62 + u8::try_from(n % 32).unwrap())));
            let flags = END_HEADERS | END_STREAM;
            if sink.write_all(&frame(HEADERS, flags, stream(step), &bomb)).await.is_err() {
                break;
            }
        }
        // The connection gets a GOAWAY or is closed; earlier frames do not matter.
        drop((frames, sink));
        let peak = portico.peak_kib().saturating_sub(before);
        assert!(peak < MAX_GROWTH_KIB, "{peak} KiB");
    }
    wait_until("the server is ready", || async { portico.admin().get("/readyz").await.text() == "ok" }).await;
}

/// Repeats a request until the connection accepts no more.
async fn request_until_closed(sink: &mut (impl AsyncWrite + Unpin), request: &[u8], every: Duration) {
    let mut beat = tokio::time::interval(every);
    for step in 0.. {
        beat.tick().await;
        let frame = frame(HEADERS, END_HEADERS | END_STREAM, stream(step), request);
        if sink.write_all(&frame).await.is_err() || sink.flush().await.is_err() {
            break;
        }
    }
}

/// An unauthenticated client cannot keep an HTTP/2 connection (upstream's `UnauthenticatedHTTP2DOSMitigation`), even if it
/// neither responds nor stops.
#[tokio::test(flavor = "multi_thread")]
async fn an_unauthenticated_client_gets_a_goaway_after_one_response() {
    let portico = Portico::start().await;
    for credentials in [None, Some("Bearer nobody")] {
        let (frames, mut sink) = http2::open(&portico.anonymous(), &[]).await.unwrap();
        let mut request = head("GET", "/api");
        request.extend(credentials.into_iter().flat_map(|text| literal("authorization", text)));
        let requesting = request_until_closed(&mut sink, &request, Duration::from_millis(500));
        let (received, ()) = tokio::join!(frames.read_until_closed(Duration::from_secs(40)), requesting);
        let has = |kind| received.iter().any(|frame| frame.kind == kind);
        assert!(has(HEADERS) && has(http2::GOAWAY), "{credentials:?}: {received:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unauthenticated_client_loads_the_console_over_one_connection() {
    let portico = Portico::start().await;
    let (frames, mut sink) = http2::open(&portico.anonymous(), &[]).await.unwrap();
    let request = head("GET", "/console/");
    let requesting = request_until_closed(&mut sink, &request, Duration::from_millis(5));
    let (received, ()) = tokio::join!(frames.read_until_closed(Duration::from_secs(40)), requesting);
    let answers =
        |frames: &[http2::ReceivedFrame]| frames.iter().filter(|frame| frame.kind == HEADERS).count();
    let end = received.iter().position(|frame| frame.kind == http2::GOAWAY).expect("GOAWAY");
    assert!(answers(&received[..end]) >= 60, "a page has thirty parts: {}", answers(&received[..end]));
}
