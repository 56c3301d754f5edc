//! A client stops: its request is truncated, stalled or malformed at every byte. The backend never gets a complete request, and
//! connections and permits are released.

use std::time::Duration;

use futures::future::join_all;

use crate::backend::{Backend, Reply, ok};
use crate::front::{FLUNDERS, Front, RawClient, Setup};

/// Two chunks and a trailer.
const CHUNKS: &str = "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nx-sum: 7\r\n\r\n";

fn chunked() -> (String, &'static str) {
    let head = format!(
        "POST {FLUNDERS} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n"
    );
    (head, CHUNKS)
}

fn with_length() -> (String, &'static str) {
    (format!("POST {FLUNDERS} HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\n"), "hello world")
}

/// Way in which a client disconnects.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The client closes its sending side, and could read a response.
    HalfClose,
    Close,
    Reset,
}

async fn cut(client: RawClient, how: Cut) -> String {
    let RawClient { mut stream } = client;
    match how {
        Cut::HalfClose => {
            tokio::io::AsyncWriteExt::shutdown(&mut stream).await.unwrap();
            return RawClient { stream }.read_to_end().await;
        }
        Cut::Reset => stream.set_zero_linger().unwrap(),
        Cut::Close => {}
    }
    String::new()
}

#[tokio::test]
async fn a_truncated_upload_is_no_request_for_the_backend() {
    for (head, body) in [chunked(), with_length()] {
        let mut backend = Backend::start(|_| ok("whole")).await;
        let front = Setup::to(&[&backend]).start().await;
        let mut clients = 0;
        let whole = format!("{head}{body}");
        for (length, how) in (1..whole.len())
            .flat_map(|length| [Cut::HalfClose, Cut::Close, Cut::Reset].map(|how| (length, how)))
        {
            let mut client = front.raw().await;
            client.write(&whole[..length]).await;
            let answer = cut(client, how).await;
            clients += 1;
            front.wait_idle(clients).await;
            assert!(!answer.contains(" 200 "), "{how:?} after {length} bytes: {answer}");
            if length >= head.len() && matches!(how, Cut::HalfClose) {
                assert!(answer.starts_with("HTTP/1.1 503 "), "after {length} bytes: {answer}");
                assert!(answer.contains("the request's body ended before it was complete"), "{answer}");
            }
        }
        backend.wait_disconnected().await;
        assert!(!backend.has_unread_request(), "an incomplete request arrived");
        let mut client = front.raw().await;
        client.write(&whole).await;
        client.read_until("whole").await;
        assert_eq!(backend.next_request().await.line, format!("POST {FLUNDERS} HTTP/1.1"));
    }
}

#[tokio::test]
async fn malformed_chunks_are_a_bad_request() {
    let mut backend = Backend::start(|_| ok("whole")).await;
    let front = Setup::to(&[&backend]).start().await;
    for body in [
        "0x2\r\nab\r\n0\r\n\r\n",
        "2\r\nab\r\n0x0\r\n\r\n",
        "fffffffffffffffff\r\nab\r\n0\r\n\r\n",
        "10000000000000000\r\n\r\n",
        "2\r\nab0\r\n\r\n",
        "2\r\nabc\r\n0\r\n\r\n",
        "2\nab\n0\n\n",
        "2\r\nab\r\n\r\n\r\n",
        "-1\r\n\r\n",
        "+2\r\nab\r\n0\r\n\r\n",
        " 2\r\nab\r\n0\r\n\r\n",
        "2;x\nab\r\n0\r\n\r\n",
        "2\r\nab\r\n0\r\nno trailer\r\n\r\n",
    ] {
        let mut client = front.raw().await;
        let head = format!("POST {FLUNDERS} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
        client.write(&format!("{head}{body}")).await;
        let answer = client.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{body:?}: {answer}");
        assert!(answer.contains("not chunked as HTTP/1.1 wants it"), "{body:?}: {answer}");
    }
    backend.wait_disconnected().await;
    assert!(!backend.has_unread_request(), "a malformed request arrived");
}

#[tokio::test]
async fn a_stalled_body_times_out_and_releases_everything() {
    let mut backend = Backend::start(|_| ok("whole")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.deadline = Some(Duration::from_millis(300));
    let front = setup.start().await;
    let stalled = |head: String, body: &'static str| {
        let front = &front;
        (0..body.len()).map(move |length| {
            let sent = format!("{head}{}", &body[..length]);
            async move {
                let mut client = front.raw().await;
                client.write(&sent).await;
                let answer = client.read_until("\r\n\r\n").await;
                assert!(answer.starts_with("HTTP/1.1 504 "), "after {sent:?}: {answer}");
                client
            }
        })
    };
    let ((one, chunks), (other, length)) = (chunked(), with_length());
    let clients = join_all(stalled(one, chunks).chain(stalled(other, length))).await;
    assert_eq!(front.upstream_in_flight(), 0);
    backend.wait_disconnected().await;
    drop(clients);
    assert!(!backend.has_unread_request(), "an incomplete request arrived");
}

#[tokio::test]
async fn an_upload_truncated_during_the_response_ends_both() {
    let answered = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nearly\r\n";
    for end in ["", "5\r\nhel", "0x5\r\n"] {
        let mut backend = Backend::start(move |_| Reply::Stall(answered.to_owned())).await;
        let front = Setup::to(&[&backend]).start().await;
        let mut client = front.raw().await;
        let head = format!(
            "POST {FLUNDERS} HTTP/1.1\r\nhost: a\r\nexpect-early: 1\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        client.write(&format!("{head}5\r\nhello\r\n")).await;
        client.read_until("early").await;
        client.write(end).await;
        let rest = cut(client, Cut::HalfClose).await;
        assert!(!rest.contains("0\r\n\r\n"), "after {end:?} a whole response: {rest}");
        front.wait_idle(1).await;
        backend.wait_disconnected().await;
    }
}

/// Frames of HTTP/2, encoded by hand so that each byte is known.
mod frames {
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    pub fn preface() -> Vec<u8> {
        [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat()
    }

    /// Head of a POST to this path.
    pub fn head(path: &str) -> Vec<u8> {
        // Indexed: `:method: POST`, `:scheme: http`; literal with an indexed name: `:path`, `:authority`.
        let (path, mut block) = (path.as_bytes(), vec![0x83, 0x86, 0x04]);
        block.push(u8::try_from(path.len()).unwrap());
        block.extend_from_slice(path);
        block.extend_from_slice(b"\x01\x01a");
        frame(1, 4, 1, &block)
    }

    pub fn data(bytes: &[u8], last: bool) -> Vec<u8> {
        frame(0, u8::from(last), 1, bytes)
    }

    /// `RST_STREAM`
    pub fn reset(code: u32) -> Vec<u8> {
        frame(3, 0, 1, &code.to_be_bytes())
    }
}

async fn write(front: &Front, bytes: &[u8]) -> RawClient {
    let mut client = front.raw().await;
    tokio::io::AsyncWriteExt::write_all(&mut client.stream, bytes).await.unwrap();
    client
}

#[tokio::test]
async fn a_truncated_or_reset_http2_upload_is_no_request_for_the_backend() {
    let mut backend = Backend::start(|_| ok("whole")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.http2 = true;
    let front = setup.start().await;
    let open = [frames::preface(), frames::head(FLUNDERS), frames::data(b"hello", false)].concat();
    let whole = [open.clone(), frames::data(b" world", true)].concat();
    let mut clients = 0;
    for length in 1..whole.len() {
        drop(write(&front, &whole[..length]).await);
        clients += 1;
        front.wait_idle(clients).await;
    }
    backend.wait_disconnected().await;
    assert!(!backend.has_unread_request(), "an incomplete request arrived");
    // A reset with NO_ERROR (0) refuses more data; it does not end a body. It arrives while the backend waits for the rest.
    let mut backend = Backend::start(|_| ok("whole")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.http2 = true;
    let (front, mut clients) = (setup.start().await, 0);
    for code in [0, 0, 0, 0, 1, 2, 7, 8] {
        for open in [open.clone(), [frames::preface(), frames::head(FLUNDERS)].concat()] {
            let RawClient { mut stream } = write(&front, &open).await;
            backend.wait_connected().await;
            tokio::io::AsyncWriteExt::write_all(&mut stream, &frames::reset(code)).await.unwrap();
            tokio::io::AsyncWriteExt::shutdown(&mut stream).await.unwrap();
            clients += 1;
            front.wait_idle(clients).await;
        }
    }
    backend.wait_disconnected().await;
    assert!(!backend.has_unread_request(), "an incomplete request arrived");
    let _client = write(&front, &whole).await;
    assert!(
        backend.next_request().await.body.ends_with(b" world\r\n0\r\n\r\n"),
        "a complete request arrives"
    );
}
