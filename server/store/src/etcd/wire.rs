//! Messages of etcd's API (`etcdserverpb` and `mvccpb`), limited to the parts that are used.

use prost::{Enumeration, Message, Oneof};

/// Header of every response.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Header {
    #[prost(uint64, tag = "1")]
    pub(super) cluster_id: u64,
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(int64, tag = "4")]
    pub(super) version: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    /// Exclusive end; empty for a single key.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    /// Maximum number of keys; 0 if unlimited.
    #[prost(int64, tag = "3")]
    pub(super) limit: i64,
    /// Revision; 0 for the newest.
    #[prost(int64, tag = "4")]
    pub(super) revision: i64,
    #[prost(bool, tag = "8")]
    pub(super) keys_only: bool,
    #[prost(bool, tag = "9")]
    pub(super) count_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(super) more: bool,
    /// Number of keys in the whole range, regardless of the limit.
    #[prost(int64, tag = "4")]
    pub(super) count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct PutResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    /// Exclusive end; empty for a single key.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct DeleteResponse {
    #[prost(int64, tag = "2")]
    pub(super) deleted: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Request", tags = "1, 2, 3")]
    pub(super) request: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRequest),
}

impl RequestOp {
    /// Returns an operation that reads one key.
    pub(super) fn get(key: Vec<u8>) -> Self {
        Self { request: Some(Request::Range(RangeRequest { key, ..RangeRequest::default() })) }
    }

    /// Returns an operation that writes one key.
    pub(super) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> Self {
        Self { request: Some(Request::Put(PutRequest { key, value, lease })) }
    }

    /// Returns an operation that deletes one key.
    pub(super) fn delete(key: Vec<u8>) -> Self {
        Self::delete_range((key, Vec::new()))
    }

    /// Returns an operation that deletes the keys of a range.
    pub(super) fn delete_range((key, range_end): (Vec<u8>, Vec<u8>)) -> Self {
        Self { request: Some(Request::Delete(DeleteRequest { key, range_end })) }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseOp {
    #[prost(oneof = "Response", tags = "1, 2, 3")]
    pub(super) response: Option<Response>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Response {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    Delete(DeleteResponse),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum CompareResult {
    Equal = 0,
    Greater = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum CompareTarget {
    Version = 0,
    Mod = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Compare {
    #[prost(enumeration = "CompareResult", tag = "1")]
    pub(super) result: i32,
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub(super) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key: Vec<u8>,
    #[prost(oneof = "Compared", tags = "4, 6")]
    pub(super) compared: Option<Compared>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub(super) enum Compared {
    #[prost(int64, tag = "4")]
    Version(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

impl Compare {
    /// Returns the condition that a key was last written at this revision; 0 for the condition that it does not exist.
    pub(super) fn is_at(key: Vec<u8>, revision: i64) -> Self {
        Self {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Mod.into(),
            key,
            compared: Some(Compared::ModRevision(revision)),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) responses: Vec<ResponseOp>,
}

impl TxnResponse {
    /// Returns the keys of the first range response.
    pub(super) fn into_range(self) -> Vec<KeyValue> {
        let found = self.responses.into_iter().find_map(|op| match op.response {
            Some(Response::Range(found)) => Some(found.kvs),
            _ => None,
        });
        found.unwrap_or_default()
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(super) revision: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct CompactionResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchRequest {
    #[prost(oneof = "WatchAsk", tags = "1, 3")]
    pub(super) ask: Option<WatchAsk>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum WatchAsk {
    #[prost(message, tag = "1")]
    Create(WatchCreate),
    #[prost(message, tag = "3")]
    Progress(WatchProgress),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchCreate {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    /// First revision whose events are sent.
    #[prost(int64, tag = "3")]
    pub(super) start_revision: i64,
    #[prost(bool, tag = "6")]
    pub(super) prev_kv: bool,
    #[prost(bool, tag = "8")]
    pub(super) fragment: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct WatchProgress {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bool, tag = "3")]
    pub(super) created: bool,
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    #[prost(int64, tag = "5")]
    pub(super) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(super) cancel_reason: String,
    /// True if more events of the same revisions follow.
    #[prost(bool, tag = "7")]
    pub(super) fragment: bool,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<WatchEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum WatchEventType {
    Put = 0,
    Delete = 1,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchEvent {
    #[prost(enumeration = "WatchEventType", tag = "1")]
    pub(super) event_type: i32,
    /// Current state; for a deletion, only the key and its revision.
    #[prost(message, optional, tag = "2")]
    pub(super) kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub(super) prev_kv: Option<KeyValue>,
}

impl WatchEvent {
    /// Returns the revision of the change.
    pub(super) fn revision(&self) -> i64 {
        self.kv.as_ref().map_or(0, |kv| kv.mod_revision)
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    #[prost(string, tag = "4")]
    pub(super) error: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(int64, tag = "3")]
    pub(super) db_size: i64,
}
