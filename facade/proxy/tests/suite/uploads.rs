//! Request bodies: streamed, broken off, responded to early.

use std::convert::Infallible;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::StreamBody;
use hyper::body::Frame;
use portico_machinery::{RequestInfo, Status, UserInfo};
use portico_proxy::{BoxError, Identity, ProxyContext, RequestBody};
use tokio::sync::mpsc;

use crate::backend::{Backend, Reply, ok, with_status};
use crate::front::{FLUNDERS, Front, Setup};

pub async fn post(front: &Front, body: RequestBody) -> http::Response<portico_proxy::ProxyBody> {
    let identity = Identity::new(&UserInfo::new("alice", ["dev"]));
    let request_info = RequestInfo::parse("POST", FLUNDERS, "").unwrap();
    let context = ProxyContext {
        identity: Some(&identity),
        audit_id: &HeaderValue::from_static(""),
        client: None,
        request_info: &request_info,
        deadline: None,
        trace: None,
    };
    let request = Request::builder().method("POST").uri(FLUNDERS).body(body).unwrap();
    front.proxy.handle(&front.upstream, request, context).await
}

#[tokio::test]
async fn a_body_of_unknown_length_arrives_in_chunks() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let (tx, mut rx) = mpsc::channel::<&'static str>(1);
    let frames = futures::stream::poll_fn(move |cx| {
        rx.poll_recv(cx).map(|piece| {
            piece.map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from_static(piece.as_bytes()))))
        })
    });
    let sending = async move {
        for piece in ["{\"a\"", ": 1}"] {
            tx.send(piece).await.unwrap();
        }
    };
    let (response, ()) = tokio::join!(post(&front, RequestBody::new(StreamBody::new(frames))), sending);
    assert_eq!(response.status(), 200);
    let seen = backend.next_request().await;
    assert_eq!((seen.all("transfer-encoding"), seen.all("content-length").len()), (vec!["chunked"], 0));
    assert_eq!(seen.body, b"4\r\n{\"a\"\r\n4\r\n: 1}\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_filters_refusal_of_the_body_reaches_the_client() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let frames = futures::stream::iter([
        Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"{"))),
        Err(Status::too_large(1).into()),
    ]);
    let response = post(&front, RequestBody::new(StreamBody::new(frames))).await;
    assert_eq!(response.status(), 413);
    assert!(!backend.has_unread_request(), "an incomplete request is no request");
}

#[tokio::test]
async fn an_early_response_passes_and_its_connection_is_not_reused() {
    let backend = Backend::start(|seen| match seen.all("expect-early").is_empty() {
        true => ok("late"),
        false => with_status("413 Too Large", "", "early"),
    })
    .await;
    let front = Setup::to(&[&backend]).start().await;
    assert_eq!(front.get(FLUNDERS).await.body, "late");
    let (_open, rx) = mpsc::channel::<Bytes>(1);
    let mut rx = rx;
    let frames = futures::stream::poll_fn(move |cx| {
        rx.poll_recv(cx).map(|piece| piece.map(|piece| Ok::<_, Infallible>(Frame::data(piece))))
    });
    let identity = Identity::new(&UserInfo::new("alice", ["dev"]));
    let request_info = RequestInfo::parse("POST", FLUNDERS, "").unwrap();
    let context = ProxyContext {
        identity: Some(&identity),
        audit_id: &HeaderValue::from_static(""),
        client: None,
        request_info: &request_info,
        deadline: None,
        trace: None,
    };
    let body = RequestBody::new(StreamBody::new(frames));
    let request =
        Request::builder().method("POST").uri(FLUNDERS).header("expect-early", "1").body(body).unwrap();
    let response = front.proxy.handle(&front.upstream, request, context).await;
    assert_eq!(response.status(), 413);
    drop(response);
    assert_eq!(front.get(FLUNDERS).await.body, "late");
    assert_eq!(backend.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_large_upload_arrives_completely() {
    let mut backend =
        Backend::start(|_| Reply::Bytes("HTTP/1.1 201 C\r\ncontent-length: 0\r\n\r\n".into())).await;
    let front = Setup::to(&[&backend]).start().await;
    let body = "y".repeat(2_000_000);
    assert_eq!(front.send("POST", FLUNDERS, &[], &body).await.status, 201);
    assert!(backend.next_request().await.body == body.as_bytes());
}
