//! Tests of one exchange over a pair of in-memory sockets: either side stops, and the other side notices.

use std::io;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use http_body::Frame;
use http_body_util::StreamBody;
use portico_machinery::Status;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::super::open_connections::OpenConnections;
use super::*;
use crate::request_body::BoxError;
use crate::request_body::RequestBody;

const RESPONSE: &str = "HTTP/1.1 103 E\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn request(frames: Vec<Result<&'static str, BoxError>>) -> OutgoingRequest<'static> {
    let host = HeaderValue::from_static("b:1");
    let mut request =
        OutgoingRequest::internal(http::Method::GET, PathAndQuery::from_static("/x"), host, HeaderMap::new());
    request.method = Method::POST;
    let frames =
        frames.into_iter().map(|frame| frame.map(|text| Frame::data(Bytes::from_static(text.as_bytes()))));
    request.body = RequestBody::new(StreamBody::new(futures::stream::iter(frames)));
    request
}

async fn open(io: UnixStream) -> Http1 {
    Http1::open(io.into(), 1, &TaskSet::new(), OpenConnections::default().track()).await.unwrap()
}

/// Returns the status code or the error of a request, and the bytes that the backend read. The backend sends `sends` and closes.
async fn exchange(mut request: OutgoingRequest<'_>, sends: &str) -> (Result<u16, Http1Error>, String) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut from_us, mut to_us) = theirs.into_split();
    let backend = async {
        let mut read = [0; 8].to_vec();
        // The backend responds after the request: bytes on an idle connection would close it.
        from_us.read_exact(&mut read).await.unwrap();
        to_us.write_all(sends.as_bytes()).await.unwrap();
        to_us.shutdown().await.unwrap();
        from_us.read_to_end(&mut read).await.unwrap();
        String::from_utf8(read).unwrap()
    };
    let sending = async {
        let authority = HeaderValue::from_static("b:1");
        let sent = open(ours).await.send(&mut request, &authority).await;
        sent.map(|(_connection, answer)| answer.status().as_u16())
    };
    tokio::join!(sending, backend)
}

#[tokio::test]
async fn a_failed_body_leaves_the_request_incomplete() {
    let malformed = || io::Error::new(io::ErrorKind::InvalidInput, "Invalid chunk size");
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    for (frames, want) in [
        (vec![Err(cut().into())], None),
        (vec![Ok("hel"), Err(cut().into()), Ok("lo")], None),
        (vec![Ok("hel"), Err(malformed().into())], Some(400)),
        (vec![Ok("hel"), Err(Status::too_large(1).into())], Some(413)),
    ] {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut request = request(frames);
        let sent = open(ours).await.send(&mut request, &HeaderValue::from_static("b:1")).await;
        let code = match sent {
            Err(Http1Error::Broken(SendError::Body(status))) => Some(status.code),
            Err(Http1Error::Broken(SendError::Http(_))) => None,
            _ => panic!("the request was sent"),
        };
        assert_eq!(code, want);
        let mut read = String::new();
        theirs.read_to_string(&mut read).await.unwrap();
        assert!(!read.contains("\r\n0\r\n"), "{read:?}");
    }
}

#[tokio::test]
async fn a_truncated_head_is_not_a_response() {
    let head = RESPONSE.len() - "ok".len();
    for length in 0..=RESPONSE.len() {
        let (sent, read) = exchange(request(vec![Ok("hello")]), &RESPONSE[..length]).await;
        match sent {
            Ok(code) => assert!(length >= head && code == 200, "after {length} bytes"),
            Err(Http1Error::Broken(SendError::Http(reason))) => {
                assert!(length < head, "after {length} bytes");
                assert_eq!(reason, CLOSED);
            }
            Err(_) => panic!("after {length} bytes"),
        }
        assert!(length < head || read.ends_with("5\r\nhello\r\n0\r\n\r\n"), "{read:?}");
    }
}
