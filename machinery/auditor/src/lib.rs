//! Audit: delivery of the events of requests, for servers that handle requests.
//!
//! [`Auditor`] has the policy and the backends; [`AuditedRequest`] collects the event of one request, [`CompletionGuard`] sends
//! its last stage. The crate does not depend on how requests are received and handled: it knows no routes, layers or messages.

mod audit_id;
mod audited_request;
mod auditor;
mod backend;
mod batch_sender;
mod completion_guard;
mod deliveries;
mod destination;
mod error;
mod latencies;
mod list_collector;
mod log;
mod metrics;
mod policy_file;
mod settings;
mod throttle;
mod webhook;

pub use audit_id::{AUDIT_ID, new_audit_id};
pub use audited_request::AuditedRequest;
pub use auditor::{AuditTail, Auditor};
pub use completion_guard::{CompletionGuard, panic_status};
pub use error::AuditError;
pub use latencies::Latency;
pub use list_collector::ListCollector;
pub use settings::{
    AuditBatchSettings, AuditDelivery, AuditFormat, AuditLogSettings, AuditMode, AuditSettings,
    AuditWebhookSettings, TruncationLimits,
};
