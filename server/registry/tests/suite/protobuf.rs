//! Protobuf through the harness: bodies, objects, lists, watches and refusals.

use bytes::Bytes;
use futures::StreamExt;
use portico_machinery::GroupVersionKind;
use portico_machinery::protobuf::{Envelope, Reader, decode_envelope};
use portico_machinery::{Object, Status};
use portico_registry::{Answer, Body, EventType};
use portico_schema::{Format, Schema};

use crate::harness::{Harness, JSON, PROTOBUF, next, object};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn schema() -> (Schema, GroupVersionKind) {
    let kinds = portico_kinds::Kinds::builtin().unwrap();
    let info = kinds.iter().find(|info| info.gvk.kind == "ConfigMap").unwrap();
    (info.schema.clone(), info.gvk.clone())
}

/// Complete body, and the number of its pieces.
async fn whole(answer: Answer) -> (Bytes, usize) {
    match answer.body {
        Body::Bytes(bytes) => (bytes, 1),
        Body::List(pieces) => {
            let pieces: Vec<Bytes> = pieces.map(|piece| piece.unwrap()).collect().await;
            (pieces.concat().into(), pieces.len())
        }
        Body::Watch(_) => panic!("a watch has no end to be read to"),
    }
}

async fn get(harness: &Harness, url: &str) -> (u16, Bytes) {
    let answer = harness.answer("GET", url, PROTOBUF, "", "").await;
    assert_eq!(answer.media_type(), PROTOBUF);
    (answer.code, whole(answer).await.0)
}

/// Fields of a message with this number.
fn fields(message: &[u8], number: u32) -> Vec<&[u8]> {
    let mut reader = Reader::new(message);
    let all = std::iter::from_fn(|| reader.field().unwrap());
    all.filter(|(n, _)| *n == number).map(|(_, scalar)| scalar.bytes("it").unwrap()).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Name in the message of an object.
fn name(message: &[u8]) -> String {
    text(fields(fields(message, 1)[0], 1)[0]).to_owned()
}

#[tokio::test]
async fn an_object_goes_in_and_out_as_protobuf() {
    let (harness, (schema, gvk)) = (Harness::open().await, schema());
    let sent = Object::from_json(object("ConfigMap", "a", r#","data":{"k":"v"}"#).as_bytes()).unwrap();
    // The harness sends strings; a message with short fields is valid UTF-8.
    let body = String::from_utf8(schema.to_enveloped_protobuf(&sent)).unwrap();
    let created = harness.answer("POST", MAPS, PROTOBUF, PROTOBUF, &body).await;
    assert_eq!(created.code, 201);
    let created = whole(created).await.0;
    let (_, got) = get(&harness, &format!("{MAPS}/a")).await;
    assert_eq!(created, got);
    let read = schema.decode(&got, Format::Protobuf, &gvk).unwrap().object;
    let mut json = harness.get(&format!("{MAPS}/a")).await.object();
    assert_eq!(read.at(&["data", "k"]).str(), "v");
    schema.normalize(&mut json);
    let mut read = read;
    schema.normalize(&mut read);
    assert_eq!(read, json);
    let fallback = format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,{JSON}");
    let plain = harness.answer("GET", &format!("{MAPS}/a"), &fallback, "", "").await;
    assert_eq!(plain.media_type(), JSON, "tables have no protobuf");
}

#[tokio::test]
async fn a_list_of_any_length_has_a_length_prefix() {
    let harness = Harness::open().await;
    for count in [3, 200] {
        for n in 0..count {
            let padding = "x".repeat(1000);
            let data = format!(r#","data":{{"k":"{padding}"}}"#);
            harness.post(MAPS, &object("ConfigMap", &format!("m{n:03}"), &data)).await;
        }
        let answer = harness.answer("GET", MAPS, PROTOBUF, "", "").await;
        let (bytes, pieces) = whole(answer).await;
        assert_eq!(pieces > 1, count > 100, "{pieces} pieces");
        let Envelope { kind, api_version, raw } = decode_envelope(&bytes).unwrap();
        assert_eq!((&*kind, &*api_version), ("ConfigMapList", "v1"));
        let names: Vec<String> = fields(raw, 2).into_iter().map(name).collect();
        assert_eq!(names, harness.get(MAPS).await.names());
        let revision = harness.get(MAPS).await.at("metadata.resourceVersion");
        assert_eq!(text(fields(fields(raw, 1)[0], 2)[0]), revision);
    }
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let (bytes, _) = whole(harness.answer("GET", MAPS, &metadata, "", "").await).await;
    let list = decode_envelope(&bytes).unwrap();
    assert_eq!((&*list.kind, &*list.api_version), ("PartialObjectMetadataList", "meta.k8s.io/v1"));
    assert_eq!(fields(list.raw, 2).len(), 200);
    assert!(bytes.len() < 200 * 700, "only metadata: {}", bytes.len());
}

#[tokio::test]
async fn watchers_of_protobuf_share_separate_frames() {
    let harness = Harness::open().await;
    let url = format!("{MAPS}?watch=1");
    let answer = harness.answer("GET", &url, PROTOBUF, "", "").await;
    assert_eq!(answer.media_type(), "application/vnd.kubernetes.protobuf;stream=watch");
    let mut one = harness.watch(&url, PROTOBUF).await;
    let mut two = harness.watch(&url, PROTOBUF).await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let (frame, same) = (next(&mut one).await, next(&mut two).await);
    assert!(std::sync::Arc::ptr_eq(&frame, &same));
    let line = frame.line();
    let (length, event) = line.split_at(4);
    assert_eq!(u32::from_be_bytes(length.try_into().unwrap()) as usize, event.len());
    assert_eq!((frame.kind, text(fields(event, 1)[0])), (EventType::Added, "ADDED"));
    let sealed = fields(fields(event, 2)[0], 1)[0];
    assert_eq!(sealed, frame.object());
    assert_eq!(
        (&*decode_envelope(sealed).unwrap().kind, name(decode_envelope(sealed).unwrap().raw)),
        ("ConfigMap", "a".to_owned())
    );
    let (_, got) = get(&harness, &format!("{MAPS}/a")).await;
    assert_eq!(sealed, got);
}

#[tokio::test]
async fn refusals_are_protobuf_for_clients_that_accept_only_protobuf() {
    let harness = Harness::open().await;
    let (code, bytes) = get(&harness, &format!("{MAPS}/missing")).await;
    assert_eq!(code, 404);
    let want: Status = serde_json::from_str(&harness.get(&format!("{MAPS}/missing")).await.text).unwrap();
    assert_eq!(bytes, want.to_protobuf());
    for (body, expected) in [
        ("", "empty data"),
        ("{\"kind\":\"ConfigMap\"}", "expected prefix [107 56 115 0] ({"),
        ("k8s\0\n\x01", "unexpected EOF"),
        ("k8s\0\n\x0b\x12\x09ConfigMap\x12\x02\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        ("k8s\0\n\x08\x12\x06Secret", "cannot be handled as a ConfigMap"),
    ] {
        let refused = harness.request("POST", MAPS, JSON, PROTOBUF, body).await;
        assert_eq!(refused.code, 400, "{}", refused.text);
        assert!(refused.at("message").contains(expected), "{}", refused.text);
    }
    let options = harness
        .request(
            "DELETE",
            &format!("{MAPS}/missing"),
            JSON,
            PROTOBUF,
            "k8s\0\n\x0f\x12\x0dDeleteOptions\x12\0",
        )
        .await;
    assert_eq!(options.code, 404, "{}", options.text);
}

#[tokio::test]
async fn malicious_bodies_are_decoded_quickly() {
    let (schema, gvk) = schema();
    let seal = |raw: Vec<u8>| portico_machinery::protobuf::encode_envelope("v1", "ConfigMap", &raw);
    let bodies = [
        // Entries of the map `data` without content; finalizers without content; owners without content.
        [0x12, 0].repeat(1_500_000),
        [&[0x0a, 0x80, 0x80, 0xb0, 0x01][..], &[0x72, 0].repeat(1_441_792)].concat(),
        [&[0x0a, 0x80, 0x80, 0xb0, 0x01][..], &[0x6a, 0].repeat(1_441_792)].concat(),
        // Nested groups, and an unknown field.
        [0x0b].repeat(3 << 20),
        [0x78, 0].repeat(1_500_000),
    ];
    for body in bodies {
        let body = seal(body);
        let started = cpu_time::ThreadTime::now();
        let _ = schema.decode(&body, Format::Protobuf, &gvk);
        // Processor time, so that the load of the machine does not matter; a debug build takes a hundred times longer than a
        // release build.
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }
}
