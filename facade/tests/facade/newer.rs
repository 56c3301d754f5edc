//! A control service of a newer release, whose stream contains unknown messages, kinds of entries and fields.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::future::{BoxFuture, FutureExt};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use portico_auth::forwarded::LocalTrust;
use portico_facade::{ControlTransport, ProcessResources};
use portico_proto::config::stream_request::Message as RequestMessage;
use portico_proto::config::{self as pb, stream_response::Message as ResponseMessage};
use prost::Message;
use tokio::sync::watch;
use tonic::body::Body;

use super::control::{ScriptedControl, version};
use super::rig::{Rig, check, eventually, served};

/// Field 90, a string: unknown in all messages of this build.
const UNKNOWN_FIELD: &[u8] = b"\xd2\x05\x05newer";

/// Encodes a message with an unknown field.
fn encode_with_unknown_field(message: &impl Message) -> Vec<u8> {
    let mut bytes = message.encode_to_vec();
    bytes.extend_from_slice(UNKNOWN_FIELD);
    bytes
}

/// Encodes a message as a field of another one.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    prost::encoding::encode_key(number.into(), prost::encoding::WireType::LengthDelimited, &mut field);
    prost::encoding::encode_varint(bytes.len() as u64, &mut field);
    field.extend_from_slice(bytes);
    field
}

/// Messages of the stream: a snapshot with one entry of an unknown kind.
fn messages() -> Vec<Vec<u8>> {
    let begin = pb::Begin { version: Some(version(5)), ..pb::Begin::default() };
    let strange = pb::Entry { key: "strange".to_owned(), revision: 5, ..pb::Entry::default() };
    let supported = [served("", "v1"), check("known", true)]
        .map(|entry| encode_with_unknown_field(&pb::Entry::from(&entry)));
    let entries: Vec<u8> = supported
        .iter()
        .chain([&encode_with_unknown_field(&strange)])
        .flat_map(|entry| field(2, entry))
        .collect();
    let end =
        pb::StreamResponse { message: Some(ResponseMessage::End(pb::End { version: Some(version(5)) })) };
    let delta =
        pb::Entries { version: Some(version(6)), entries: vec![pb::Entry::from(&check("later", true))] };
    vec![
        field(1, &encode_with_unknown_field(&begin)),
        UNKNOWN_FIELD.to_vec(),
        field(2, &entries),
        encode_with_unknown_field(&end),
        field(2, &encode_with_unknown_field(&delta)),
    ]
}

fn grpc_frame(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap());
    frame.extend_from_slice(message);
    frame.freeze()
}

/// Serves the stream from bytes; all other calls are unavailable.
#[derive(Clone)]
struct NewerControl {
    acks: watch::Sender<Vec<pb::Ack>>,
}

impl tower::Service<Request<Body>> for NewerControl {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !request.uri().path().ends_with("Config/Stream") {
            return async { Ok(tonic::Status::unavailable("away").into_http()) }.boxed();
        }
        let frames =
            messages().into_iter().map(|message| Ok::<_, Infallible>(Frame::data(grpc_frame(&message))));
        let received = receive_acks(request.into_body(), self.acks.clone());
        let frames = stream::iter(frames).chain(stream::once(received).filter_map(|()| async { None }));
        let body = Body::new(StreamBody::new(frames));
        let answer = Response::builder().header("content-type", "application/grpc").body(body).unwrap();
        async { Ok(answer) }.boxed()
    }
}

/// Records the acknowledgements of the facade.
async fn receive_acks(mut body: Body, acks: watch::Sender<Vec<pb::Ack>>) {
    let mut read = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        read.extend_from_slice(&frame.into_data().unwrap_or_default());
        while let Some(length) = read.get(1..5).map(|mut head| head.get_u32() as usize + 5)
            && read.len() >= length
        {
            let message = pb::StreamRequest::decode(&read.split_to(length)[5..]).unwrap();
            if let Some(RequestMessage::Ack(ack)) = message.message {
                acks.send_modify(|acks| acks.push(ack));
            }
        }
    }
}

#[tokio::test]
async fn unknown_entries_are_refused_and_the_rest_is_active() {
    let newer = NewerControl { acks: watch::channel(Vec::new()).0 };
    let mut acks = newer.acks.subscribe();
    let transport = ControlTransport::local(newer, LocalTrust::issue().0);
    let rig = Rig::with_services(
        ScriptedControl::new(Vec::new()),
        transport.into(),
        ProcessResources::default(),
        |_| {},
    )
    .until_configured()
    .await;
    let both = acks.wait_for(|acks| acks.len() == 2).await.unwrap().clone();
    let refused: Vec<_> = both[0].refused.iter().map(|refusal| refusal.key.as_str()).collect();
    assert_eq!((refused, both[1].refused.len()), (vec!["strange"], 0));
    assert_eq!(both[1].version, Some(version(6)));
    eventually(|| async {
        let ready = rig.client.get("/readyz?verbose").await.text;
        (ready.contains("[+]known ok") && ready.contains("[+]later ok")).then_some(())
    })
    .await;
}
