//! Clients that stall: permits, buffers and tasks of a client that neither reads nor sends are released within a time limit,
//! and other clients are served.

use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request};
use portico_facade::{AuthorizationMode, FacadeSettings};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{ClientTls, Roots};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::control::ScriptedControl;
use super::rig::{Rig, WAIT_TIMEOUT, eventually, served};

const PODS: &str = "/api/v1/namespaces/default/pods";
/// More bytes than the sockets on both sides buffer.
const LARGE: usize = 48 << 20;
const SHORT: Duration = Duration::from_millis(300);
/// Too long to take effect in a test.
const LONG: Duration = Duration::from_secs(600);

async fn rig(set: impl FnOnce(&mut FacadeSettings)) -> Rig {
    let control = ScriptedControl::new(vec![served("", "v1")]);
    let rig = Rig::with_settings(control, |settings| {
        // Authorization allows everything, and masters are exempt from the limits.
        settings.authorization = vec![AuthorizationMode::AlwaysAllow];
        settings.max_requests_inflight = 1;
        settings.max_mutating_requests_inflight = 1;
        settings.request_timeout = LONG;
        settings.stalled_write_timeout = LONG;
        settings.stalled_read_timeout = LONG;
        set(settings);
    });
    rig.await.until_configured().await
}

pub(super) async fn dial(rig: &Rig, protocol: &[u8]) -> TlsStream<TcpStream> {
    let roots = Roots::Pem { label: "test".into(), pem: rig.ca.clone().into() };
    let mut config = ClientTls::builder().roots(roots).build().unwrap().config().as_ref().clone();
    config.alpn_protocols = vec![protocol.to_vec()];
    let tcp = TcpStream::connect(rig.facade.addr()).await.unwrap();
    let name = rustls_pki_types::ServerName::try_from("localhost").unwrap();
    tokio_rustls::TlsConnector::from(std::sync::Arc::new(config)).connect(name, tcp).await.unwrap()
}

/// Opens an HTTP/2 connection whose streams have this window.
pub(super) async fn http2(rig: &Rig, window: u32) -> SendRequest<Bytes> {
    let io = dial(rig, b"h2").await;
    let (sender, connection) = h2::client::Builder::new()
        .initial_window_size(window)
        .initial_connection_window_size(1 << 24)
        .handshake(io)
        .await
        .unwrap();
    TaskSet::new().spawn_until_cancelled("http2-client", async move {
        // The request that fails says why.
        let _ = connection.await;
    });
    sender.ready().await.unwrap()
}

pub(super) fn request(method: Method, path: &str) -> Request<()> {
    let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    request
        .header("authorization", "Bearer alice")
        .header("content-type", "application/json")
        .body(())
        .unwrap()
}

fn script_large_list(rig: &Rig) {
    let part = Bytes::from(vec![b'x'; 1 << 20]);
    rig.control.set_list_parts(vec![part; LARGE >> 20]);
}

/// Waits until requests of this kind by another user are admitted again.
async fn wait_until_admitted(rig: &Rig, method: Method) {
    let alice = rig.client.with_token("alice");
    eventually(|| async {
        let answer = alice.send(method.clone(), PODS, &[("content-type", "application/json")], "{}").await;
        (answer.code != 429).then_some(())
    })
    .await;
}

/// Returns the sum of a metric's series that contain this label.
async fn metric(rig: &Rig, name: &str, label: &str) -> f64 {
    let text = rig.client.get("/metrics").await.text;
    let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

pub(super) async fn wait_until_terminated(rig: &Rig) {
    eventually(|| async {
        let count = metric(rig, "apiserver_request_terminations_total", "code=\"504\"").await;
        (count > 0.0).then_some(())
    })
    .await;
}

async fn wait_until_no_watches(rig: &Rig) {
    eventually(|| async {
        (metric(rig, "apiserver_longrunning_requests", "verb=\"WATCH\"").await == 0.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_list_that_an_http1_client_does_not_read_ends_at_its_deadline() {
    for (deadline, stalled) in [(SHORT, LONG), (LONG, SHORT)] {
        let rig = rig(|s| (s.request_timeout, s.stalled_write_timeout) = (deadline, stalled)).await;
        script_large_list(&rig);
        let mut io = dial(&rig, b"http/1.1").await;
        let head = format!("GET {PODS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n\r\n");
        io.write_all(head.as_bytes()).await.unwrap();
        // The response has started, and is not read further.
        io.read_exact(&mut [0; 12]).await.unwrap();
        wait_until_terminated(&rig).await;
        wait_until_admitted(&rig, Method::GET).await;
        let mut rest = Vec::new();
        // The kind of end (a reset, or no close_notify) depends on the system.
        let _ = io.read_to_end(&mut rest).await;
        assert!(rest.len() < LARGE, "the whole list came");
    }
}

#[tokio::test]
async fn a_list_for_which_an_http2_client_gives_no_window_ends_at_its_deadline() {
    for (deadline, stalled) in [(SHORT, LONG), (LONG, SHORT)] {
        for window in [0, 1, 70_000] {
            let rig = rig(|s| (s.request_timeout, s.stalled_write_timeout) = (deadline, stalled)).await;
            script_large_list(&rig);
            let mut sender = http2(&rig, window).await;
            let (response, _) = sender.send_request(request(Method::GET, PODS), true).unwrap();
            let mut body = response.await.unwrap().into_body();
            wait_until_terminated(&rig).await;
            wait_until_admitted(&rig, Method::GET).await;
            let mut read = 0;
            let end = loop {
                match body.data().await {
                    Some(Ok(data)) => read += data.len(),
                    ended => break ended,
                }
            };
            assert!(matches!(end, Some(Err(ref error)) if error.is_reset()), "{end:?}");
            assert!(read <= window as usize);
            // The connection stays open.
            let (answer, _) = sender.send_request(request(Method::GET, "/livez"), true).unwrap();
            assert_eq!(answer.await.unwrap().status(), 200);
        }
    }
}

#[tokio::test]
async fn a_refusal_that_no_filter_follows_ends_like_any_other_response() {
    let rig = rig(|s| s.stalled_write_timeout = SHORT).await;
    let mut sender = http2(&rig, 0).await;
    // The path has an invalid escape and is refused before anything is counted.
    let (response, _) = sender.send_request(request(Method::GET, "/%zz"), true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 400);
    let end = tokio::time::timeout(WAIT_TIMEOUT, response.into_body().data()).await;
    assert!(end.unwrap().unwrap().unwrap_err().is_reset());
}

#[tokio::test]
async fn watches_that_are_not_read_end_and_a_quiet_one_that_is_read_does_not() {
    let rig = rig(|s| s.stalled_write_timeout = SHORT).await;
    let watch = format!("{PODS}?watch=1");
    let mut quiet = http2(&rig, 1 << 20).await;
    let (response, _) = quiet.send_request(request(Method::GET, &watch), true).unwrap();
    let mut quiet_body = response.await.unwrap().into_body();

    let mut stalled = http2(&rig, 0).await;
    let (response, _) = stalled.send_request(request(Method::GET, &watch), true).unwrap();
    let mut stalled_body = response.await.unwrap().into_body();
    assert!(rig.control.frame("first"));
    assert_eq!(quiet_body.data().await.unwrap().unwrap(), "first");
    let error = stalled_body.data().await.unwrap().unwrap_err();
    assert!(error.is_reset(), "{error}");
    let watching = metric(&rig, "apiserver_longrunning_requests", "verb=\"WATCH\"").await;
    assert!((watching - 1.0).abs() < f64::EPSILON, "{watching}");

    // The quiet watch has been silent for longer than the stalled one was stalled.
    let release = |body: &mut h2::RecvStream, n| body.flow_control().release_capacity(n);
    release(&mut quiet_body, 5).unwrap();
    assert!(rig.control.frame("second"));
    assert_eq!(quiet_body.data().await.unwrap().unwrap(), "second");

    // Over HTTP/1 the events fill the socket first.
    drop((quiet, quiet_body));
    wait_until_no_watches(&rig).await;
    let mut io = dial(&rig, b"http/1.1").await;
    let head = format!("GET {watch} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n\r\n");
    io.write_all(head.as_bytes()).await.unwrap();
    io.read_exact(&mut [0; 12]).await.unwrap();
    let event = Bytes::from(vec![b'x'; 1 << 20]);
    eventually(|| async {
        rig.control.frame(event.clone());
        (metric(&rig, "apiserver_longrunning_requests", "verb=\"WATCH\"").await == 0.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_stalled_upload_is_refused_and_releases_its_permit() {
    let rig = rig(|s| s.stalled_read_timeout = SHORT).await;
    let mut io = dial(&rig, b"http/1.1").await;
    let head = format!(
        "POST {PODS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"kind\""
    );
    io.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = io.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\"kind\":\"Status\"") && answer.contains("too slowly"), "{answer}");
    wait_until_admitted(&rig, Method::POST).await;

    let mut sender = http2(&rig, 1 << 16).await;
    let (response, mut body) = sender.send_request(request(Method::POST, PODS), false).unwrap();
    body.send_data(Bytes::from_static(b"{"), false).unwrap();
    assert_eq!(response.await.unwrap().status(), 408);
    wait_until_admitted(&rig, Method::POST).await;
}

/// Builds a frame without flags.
fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let mut frame = vec![0, 0, length, kind, 0, 0, 0, 0, stream];
    frame.extend_from_slice(payload);
    frame
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

#[tokio::test]
async fn an_idle_http2_connection_gets_a_goaway_whatever_frames_it_has_sent() {
    let idle = Duration::from_millis(1200);
    let rig = rig(|s| (s.request_header_timeout, s.idle_timeout) = (SHORT, idle)).await;
    let begin = Instant::now();
    let mut io = dial(&rig, b"h2").await;
    io.write_all(&[PREFACE, &frame(SETTINGS, 0, &[]), &frame(PING, 0, &[7; 8])].concat()).await.unwrap();
    let mut read = Vec::new();
    let _ = io.read_to_end(&mut read).await;
    assert!(begin.elapsed() >= idle, "closed after {:?}", begin.elapsed());
    let mut rest = read.as_slice();
    let mut goaways = 0;
    while let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        if *kind == GOAWAY {
            assert_eq!(after[4..8], [0; 4], "not an error");
            goaways += 1;
        }
        rest = &after[length..];
    }
    assert!(goaways > 0, "{read:?}");
}

#[tokio::test]
async fn an_http2_head_that_does_not_end_is_cut() {
    let rig = rig(|s| s.request_header_timeout = SHORT).await;
    let mut io = dial(&rig, b"h2").await;
    // HEADERS without END_HEADERS, and no CONTINUATION.
    io.write_all(&[PREFACE, &frame(SETTINGS, 0, &[]), &frame(1, 1, &[0x82])].concat()).await.unwrap();
    let mut read = Vec::new();
    let end = tokio::time::timeout(WAIT_TIMEOUT, io.read_to_end(&mut read)).await;
    assert!(end.is_ok(), "the connection stays open");
}

#[tokio::test]
async fn a_flood_of_control_frames_ends_only_its_own_connection() {
    let rig = rig(|_| {}).await;
    for kind in [2, SETTINGS, PING, 8] {
        let payload: &[u8] = match kind {
            2 => &[0, 0, 0, 0, 1],
            SETTINGS => &[],
            PING => &[0; 8],
            _ => &[0, 0, 0, 1],
        };
        let stream = u8::from(kind == 2);
        let io = dial(&rig, b"h2").await;
        let (mut reader, mut writer) = tokio::io::split(io);
        let flood = frame(kind, stream, payload).repeat(1000);
        writer.write_all(&[PREFACE, &frame(SETTINGS, 0, &[])].concat()).await.unwrap();
        let send = async { while writer.write_all(&flood).await.is_ok() {} };
        let read = async {
            let mut piece = [0; 4096];
            while let Ok(1..) = reader.read(&mut piece).await {}
        };
        let cut = tokio::time::timeout(WAIT_TIMEOUT, async { tokio::join!(send, read) }).await;
        assert!(cut.is_ok(), "frames of type {kind} go on");
        assert_eq!(rig.client.get("/readyz").await.code, 200);
    }
}
