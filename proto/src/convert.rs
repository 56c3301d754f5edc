//! Conversions between generated types and the types of portico-machinery.

mod api_service;
mod config;
mod dial;
mod flow_control;
mod rbac;

pub use api_service::{api_service_from_object, api_service_to_object};
pub use config::{Check, Entry, InvalidEntry, Payload, PayloadKind, TokenKey, Version, setting};
pub use dial::InvalidDial;
