//! A backend stops: its response is truncated or stalled at every byte. The client never takes an incomplete response for a
//! complete one, and connections and permits are released.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::backend::{Backend, EVENT_TIMEOUT, ReceivedRequest, Reply};
use crate::front::{FLUNDERS, Front, Setup};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
    5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nx-sum: 7\r\n\r\n";
const LENGTH: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world";

/// Parses `?length=N&kind=K` of a request's target: selects the kind of response and its length.
fn requested_response(seen: &ReceivedRequest) -> (String, bool) {
    let query = seen.target().split_once('?').unwrap().1;
    let number = |key: &str| -> usize {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        found.unwrap().parse().unwrap()
    };
    let whole = if number("kind") == 0 { CHUNKED } else { LENGTH };
    (whole[..number("length")].to_owned(), number("notice") == 1)
}

/// Exchange as seen by a client; `None` if its connection breaks.
type Received = Option<(StatusCode, Option<Bytes>)>;

async fn get(front: &Front, http2: bool, path: String) -> Received {
    let io = TokioIo::new(TcpStream::connect(front.address).await.unwrap());
    let request = Request::builder().uri(format!("http://front{path}")).header("host", "front");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let answering = async {
        if http2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            front.tasks.spawn_until_cancelled("client", async move { drop(connection.await) });
            sender.send_request(request).await
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            front.tasks.spawn_until_cancelled("client", async move { drop(connection.await) });
            sender.send_request(request).await
        }
    };
    let exchange = async {
        let (head, body) = answering.await.ok()?.into_parts();
        Some((head.status, body.collect().await.ok().map(|whole| whole.to_bytes())))
    };
    tokio::time::timeout(EVENT_TIMEOUT, exchange).await.expect("the exchange does not end")
}

fn path(kind: usize, length: usize, notice: bool) -> String {
    format!("{FLUNDERS}?kind={kind}&length={length}&notice={}", u8::from(notice))
}

fn assert_incomplete(got: &Received, in_head: bool, refused: u16, what: &str) {
    match got {
        Some((status, Some(body))) => {
            assert_plain(&String::from_utf8_lossy(body));
            assert!(in_head && status.as_u16() == refused, "{what}: a complete response: {got:?}");
        }
        Some((status, None)) => assert!(!in_head && *status == 200, "{what}: {got:?}"),
        None => assert!(!in_head, "{what}: no response"),
    }
}

/// Asserts that a message contains no text of a library: URLs of documentation, type names, numbers of system errors.
fn assert_plain(text: &str) {
    for mark in ["://", "docs.rs", "::", "Some(", "Err(", "Error", "os error", "close_notify"] {
        assert!(!text.contains(mark), "{mark:?} in {text}");
    }
}

#[tokio::test]
async fn a_truncated_response_is_never_complete() {
    let mut backend = Backend::start(|seen| match requested_response(&seen) {
        (bytes, true) => Reply::Close(bytes),
        (bytes, false) => Reply::Drop(bytes),
    })
    .await;
    for http2 in [false, true] {
        let mut setup = Setup::to(&[&backend]);
        setup.http2 = http2;
        let front = setup.start().await;
        for (kind, whole) in [CHUNKED, LENGTH].into_iter().enumerate() {
            let head = whole.find("\r\n\r\n").unwrap() + 4;
            for (length, notice) in (0..whole.len()).flat_map(|at| [(at, true), (at, false)]) {
                let got = get(&front, http2, path(kind, length, notice)).await;
                let what = format!("{:?}, HTTP/2 {http2}, with notice {notice}", &whole[..length]);
                assert_incomplete(&got, length < head, 503, &what);
            }
            let got = get(&front, http2, path(kind, whole.len(), true)).await;
            assert_eq!(got, Some((StatusCode::OK, Some(Bytes::from_static(b"hello world")))));
        }
        front.wait_idle(0).await;
        backend.wait_disconnected().await;
    }
}

#[tokio::test]
async fn a_stalled_backend_ends_at_the_deadline() {
    let mut backend = Backend::start(|seen| Reply::Stall(requested_response(&seen).0)).await;
    for http2 in [false, true] {
        let mut setup = Setup::to(&[&backend]);
        (setup.http2, setup.deadline) = (http2, Some(Duration::from_secs(1)));
        let front = setup.start().await;
        let stalled = [CHUNKED, LENGTH].into_iter().enumerate().flat_map(|(kind, whole)| {
            let (front, head) = (&front, whole.find("\r\n\r\n").unwrap() + 4);
            (0..whole.len()).map(move |length| async move {
                let got = get(front, http2, path(kind, length, false)).await;
                let what = format!("{:?}, HTTP/2 {http2}", &whole[..length]);
                // The deadline may pass before the backend is reached.
                let late = matches!(got, Some((StatusCode::GATEWAY_TIMEOUT, Some(_))));
                assert_incomplete(&got, late || length < head, 504, &what);
                late
            })
        });
        let late = join_all(stalled).await;
        assert!(late.contains(&true) && late.contains(&false), "heads and bodies stall");
        front.wait_idle(0).await;
        backend.wait_disconnected().await;
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_the_response_releases_everything() {
    let mut backend = Backend::start(|seen| Reply::Stall(requested_response(&seen).0)).await;
    for http2 in [false, true] {
        let mut setup = Setup::to(&[&backend]);
        setup.http2 = http2;
        let front = setup.start().await;
        for (kind, whole) in [CHUNKED, LENGTH].into_iter().enumerate() {
            for length in (0..whole.len()).step_by(7) {
                let going = get(&front, http2, path(kind, length, false));
                let arrived = backend.next_request();
                tokio::select! {
                    got = going => panic!("the backend stalls, and yet: {got:?}"),
                    _ = arrived => {}
                }
            }
        }
        front.wait_idle(0).await;
        backend.wait_disconnected().await;
    }
}
