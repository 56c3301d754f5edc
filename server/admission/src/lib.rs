//! Who else is asked about a write: one ordered chain of plugins, and quotas.
//!
//! A plugin is a module of its own; the list in the module `chain` is all that generic code knows of them.

mod chain;
mod claim_resize;
mod default_class;
mod in_use_protection;
mod limit_ranger;
mod node_taints;
mod plugin;
mod pod_security;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod tolerations;
mod topology_labels;

pub use chain::AdmissionChain;
