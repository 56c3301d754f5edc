//! What the audit log says of a request, and whether it says anything: the policy, and events of `audit.k8s.io/v1`.
//!
//! Pure: attributes and times come in, a verdict and bytes go out. It must not know HTTP, files, or who writes events.

pub mod event;
mod level;
mod managed_fields;
pub mod policy;
mod raw_json;
mod source_ips;

pub use event::{Event, ObjectReference, ResponseStatus};
pub use level::{Level, Stage, Stages};
pub use managed_fields::without_managed_fields;
pub use policy::{AuditConfig, Policy, PolicyError};
pub use source_ips::source_ips;

/// The API version of events and policies.
pub const API_VERSION: &str = "audit.k8s.io/v1";
