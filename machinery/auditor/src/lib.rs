//! Audit: delivery of the events of requests, for servers that handle requests.
//!
//! [`Auditor`] has the policy and the backends; [`AuditedRequest`] collects the event of one request, [`CompletionGuard`] sends
//! its last stage. The crate does not depend on how requests are received and handled: it knows no routes, layers or messages.

mod audit_id;
mod audited;
mod auditor;
mod backend;
mod batches;
mod deliveries;
mod destination;
mod ending;
mod error;
mod gathered;
mod latencies;
mod log;
mod metrics;
mod policy_file;
mod settings;
mod throttle;
mod webhook;

pub use audit_id::{AUDIT_ID, new_audit_id};
pub use audited::Audited;
pub use auditor::{Auditor, Tail};
pub use ending::{Ending, panicked};
pub use error::AuditError;
pub use gathered::GatheredList;
pub use latencies::Latency;
pub use settings::{
    AuditBatches, AuditDelivery, AuditFormat, AuditLogSettings, AuditMode, AuditSettings,
    AuditWebhookSettings, Truncation,
};
