//! Input from connections: queries, frames, messages, responses of other servers.

use std::io::Cursor;

use portico_auth::authn::TokenReviewStatus;
use portico_auth::authz::review;
use portico_kit::http2_frames::FrameReader;
use portico_machinery::openapi::{Section, SpecV2, references};
use portico_machinery::{Status, UserInfo};
use portico_proto::convert::{Entry, api_service_from_object, api_service_to_object};
use portico_proto::{apiregistration, config, objects, rpc_status};
use portico_registry::options::Query;
use portico_registry::{ContinueToken, DeleteOptions};
use prost::Message;
use tokio_tungstenite::tungstenite;
use tungstenite::protocol::{Role, WebSocket, WebSocketConfig};

use crate::input::{halves, text};

/// Checks options of all verbs, in a query or as a body.
pub fn options() -> impl Fn(&[u8]) {
    |input| {
        let input = text(input);
        Query::parse(&input).read_all();
        let _ = DeleteOptions::from_body(input.as_bytes());
    }
}

/// Checks that a valid token can be encoded and decoded again without a change.
pub fn continue_tokens() -> impl Fn(&[u8]) {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    |input| {
        for token in [text(input).into_owned(), URL_SAFE_NO_PAD.encode(input)] {
            let Ok(read) = ContinueToken::decode(&token) else { continue };
            assert_eq!(ContinueToken::decode(&read.encode()), Ok(read));
        }
    }
}

/// Checks that frames of a client are decoded independently of chunk boundaries.
pub fn http2_frames() -> impl Fn(&[u8]) {
    |input| {
        let (mut whole, mut pieces) = (FrameReader::new(), FrameReader::new());
        let read = whole.parse_received(input).is_ok();
        assert_eq!(input.chunks(3).all(|piece| pieces.parse_received(piece).is_ok()), read);
        if read {
            assert_eq!(whole.is_in_head(), pieces.is_in_head());
        }
    }
}

/// Checks a client's messages, as they are read before they are forwarded to a kubelet.
pub fn web_socket_frames() -> impl Fn(&[u8]) {
    const MAX: usize = 1 << 16;
    |input| {
        let config = WebSocketConfig::default().max_message_size(Some(MAX)).max_frame_size(Some(MAX));
        let stream = Cursor::new(input.to_vec());
        let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
        while let Ok(message) = socket.read() {
            assert!(message.len() <= MAX, "{} bytes", message.len());
        }
    }
}

/// Checks messages of the gRPC API; valid entries can be encoded and decoded again without a change.
pub fn grpc_messages() -> impl Fn(&[u8]) {
    |input| {
        let _ = objects::DoRequest::decode(input);
        let _ = config::StreamRequest::decode(input);
        if let Ok(service) = apiregistration::ApiService::decode(input) {
            // An object has no nanoseconds, and a message always has a spec: after the first conversion nothing changes.
            let through = |service| api_service_from_object(&api_service_to_object(service));
            let service = through(&service);
            assert_eq!(through(&service), service);
        }
        let Ok(entries) = config::Entries::decode(input) else { return };
        for entry in entries.entries.into_iter().filter_map(|entry| Entry::try_from(entry).ok()) {
            let again = Entry::try_from(config::Entry::from(&entry)).expect("encoded data can be decoded");
            assert_eq!(again, entry);
        }
    }
}

/// Checks the status of a failed call, with details of the server.
pub fn grpc_statuses() -> impl Fn(&[u8]) {
    |input| {
        for code in [tonic::Code::InvalidArgument, tonic::Code::Internal] {
            let rpc = tonic::Status::with_details(code, "m", input.to_vec().into());
            let status = rpc_status::from_rpc(&rpc);
            let _ = (rpc_status::to_rpc(&status), status.to_json());
        }
    }
}

/// Checks that a Status of another server can be encoded and decoded again without a change.
pub fn statuses() -> impl Fn(&[u8]) {
    |input| {
        let Some(status) = Status::from_json(input) else { return };
        assert_eq!(Status::from_json(&status.to_json()), Some(status));
    }
}

/// Checks responses of webhooks to reviews of callers.
pub fn reviews() -> impl Fn(&[u8]) {
    |input| {
        for version in [review::ReviewVersion::V1, review::ReviewVersion::V1beta1] {
            if let Ok(answer) = review::ReviewAnswer::parse(version, input) {
                assert!(!(answer.denied && answer.decision().is_allowed()), "{answer:?}");
            }
        }
        if let Ok(status) = serde_json::from_slice::<TokenReviewStatus>(input) {
            let _ = UserInfo::from(status.user);
        }
    }
}

/// Checks documents of backends; removing paths from a canonical one must keep the definitions that other paths refer to.
pub fn openapi_documents() -> impl Fn(&[u8]) {
    |input| {
        let _ = SpecV2::parse(input);
        let Ok(mut spec) = SpecV2::canonical(input) else { return };
        let whole = SpecV2::parse(&spec.to_json()).expect("encoded data can be decoded");
        assert_eq!(whole.to_json(), spec.to_json());
        spec.retain_paths(|path| path.len() % 2 == 0);
        let used = spec.paths.values().flat_map(|piece| references(piece.get()));
        for (section, name) in used {
            let (has, had) = match section {
                Section::Definitions => {
                    (spec.definitions.contains_key(name), whole.definitions.contains_key(name))
                }
                Section::Parameters => {
                    (spec.parameters.contains_key(name), whole.parameters.contains_key(name))
                }
            };
            assert_eq!(has, had, "{name}");
        }
    }
}

/// Checks that a page of a proxied target is rewritten independently of chunk boundaries.
pub fn proxied_pages() -> impl Fn(&[u8]) {
    |input| {
        let (head, page) = halves(input);
        let host = text(head);
        let whole = portico_proxy::rewrite_links(&host, &[page]);
        let pieces: Vec<&[u8]> = page.chunks(3).collect();
        assert_eq!(portico_proxy::rewrite_links(&host, &pieces), whole);
    }
}
