#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

pub mod accept;
mod aggregate;
pub mod annotations;
pub mod api_path;
pub mod attributes;
pub mod bounded;
mod cause;
pub mod connect;
pub mod digest;
pub mod discovery;
pub mod effective_version;
pub mod expiration;
pub mod features;
pub mod field;
pub mod flow_control;
pub mod front_proxy;
pub mod gvk;
pub mod names;
pub mod object;
pub mod openapi;
pub mod peer_addresses;
pub mod pool;
pub mod protobuf;
pub mod rbac;
pub mod request_info;
pub mod resolve;
pub mod route;
pub mod selector;
pub mod status;
pub mod table;
pub mod time;
pub mod user;
pub mod version_order;
mod weak_map;

pub use aggregate::aggregate;
pub use attributes::Attributes;
pub use bounded::Bounded;
pub use front_proxy::FrontProxy;
pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use object::{Cursor, JsonPath, MAX_PRINTED_BYTES, Node, Object};
pub use portico_gostd::apimachinery::quantity::{self, Quantity};
pub use request_info::RequestInfo;
pub use status::{Reason, Status};
pub use user::UserInfo;
