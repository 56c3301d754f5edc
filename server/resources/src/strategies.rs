//! Strategies of kinds: behavior that the data files cannot express. A kind without such behavior has no strategy.
//!
//! A strategy reads decoded and defaulted objects through cursors. The generic verbs call strategies and do not depend on
//! specific kinds.

pub(crate) mod admissionregistration;
pub(crate) mod apiextensions;
pub(crate) mod apiserverinternal;
pub(crate) mod apiservice;
pub(crate) mod apps;
pub(crate) mod autoscaling;
mod backend_annotations;
pub(crate) mod batch;
pub(crate) mod certificates;
pub(crate) mod configmap;
pub(crate) mod core;
pub(crate) mod endpoints;
pub(crate) mod endpointslice;
pub(crate) mod event;
pub(crate) mod flowcontrol;
pub(crate) mod lease;
pub(crate) mod namespace;
pub(crate) mod networking;
pub(crate) mod node;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod resource;
pub(crate) mod scheduling;
pub(crate) mod secret;
pub(crate) mod service;
pub(crate) mod storage;
pub(crate) mod storagemigration;
pub(crate) mod workload;

pub use flowcontrol::{BuiltinFlowObject, builtin_flow_objects};

/// Joins at most `limit` items, as `a,b,c + 2 more...`.
fn join_with_limit(items: &[String], limit: usize) -> String {
    let head = items[..items.len().min(limit)].join(",");
    if items.len() > limit { format!("{head} + {} more...", items.len() - limit) } else { head }
}
