//! Who else is asked about a write: one ordered chain of plugins and webhooks, and quotas.
//!
//! A plugin is a module of its own; the table in the module `plugins` is all that generic code knows of them.

mod chain;
mod claim_resize;
mod default_class;
mod derived;
mod enabled;
mod in_use_protection;
mod index;
mod limit_ranger;
mod loaded;
mod matching;
mod metrics;
mod mutation;
mod node_taints;
mod options;
mod plugin;
mod plugins;
mod pod_security;
mod policies;
mod priority;
mod resource_quota;
mod rounds;
mod runtime_class;
mod service_account;
mod settings;
mod shown;
mod tolerations;
mod topology_labels;
mod validation;
mod webhooks;

pub use chain::AdmissionChain;
pub use enabled::PluginNameError;
pub use settings::{AdmissionSettings, EnabledPlugins};
#[doc(hidden)]
pub use webhooks::read_any as read_any_answer;
