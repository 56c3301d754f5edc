//! Who else is asked about a write: one ordered chain of plugins and webhooks, and quotas.
//!
//! A plugin is a module of its own; the list in the module `chain` is all that generic code knows of them.

mod chain;
mod claim_resize;
mod default_class;
mod derived;
mod in_use_protection;
mod limit_ranger;
mod matching;
mod metrics;
mod node_taints;
mod options;
mod plugin;
mod pod_security;
mod policies;
mod priority;
mod resource_quota;
mod rounds;
mod runtime_class;
mod service_account;
mod shown;
mod tolerations;
mod topology_labels;
mod webhooks;

pub use chain::AdmissionChain;
#[doc(hidden)]
pub use webhooks::read_any as read_any_answer;
