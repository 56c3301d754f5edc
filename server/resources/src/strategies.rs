//! What data cannot express of a kind: one small file per kind, only where there is something.
//!
//! A strategy sees decoded, defaulted objects through cursors. Generic verbs call it and name no kind themselves.

pub(crate) mod admissionregistration;
pub(crate) mod apiextensions;
pub(crate) mod apiserverinternal;
pub(crate) mod apiservice;
pub(crate) mod apps;
pub(crate) mod autoscaling;
mod backends;
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

pub use flowcontrol::{FlowObject, flow_objects};

/// `a,b,c + 2 more...`: at most `shown` of the words.
fn more(words: &[String], shown: usize) -> String {
    let head = words[..words.len().min(shown)].join(",");
    if words.len() > shown { format!("{head} + {} more...", words.len() - shown) } else { head }
}
