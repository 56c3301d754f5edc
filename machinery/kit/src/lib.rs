//! Process infrastructure: tasks, drain, lifecycle, hooks, health, backoff, TLS and backend dialing.
//!
//! This crate deals with sockets, files, certificates and time. It must not depend on Kubernetes
//! objects, HTTP routing, gRPC services, SQL, or the names of command-line flags.

pub mod atomic_file;
pub mod backoff;
pub mod certs;
pub mod change_notifier;
pub mod circuit;
pub mod config_file;
pub mod connection_runtimes;
pub mod dial;
pub mod drain;
pub mod egress;
pub mod expiring_cache;
pub mod fetch;
pub mod header_text;
pub mod health;
pub mod hooks;
pub mod http2_frames;
pub mod layer;
pub mod lifecycle;
pub mod line_writer;
pub mod listener;
pub mod metrics;
pub mod offload;
pub mod pki;
pub mod platform;
pub mod received_body;
pub mod recent_lines;
pub mod request_trace;
pub mod rotating_file;
pub mod single_flight;
pub mod slow_trace;
pub mod spans;
pub mod tasks;
pub mod telemetry;
pub mod throttled_io;
pub mod tls;
pub mod url_password;
pub mod workqueue;

#[cfg(test)]
mod fixture;
