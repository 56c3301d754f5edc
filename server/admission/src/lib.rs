//! Admission: the ordered chain of plugins, policies, webhooks and quotas that may change or refuse a write.
//!
//! Each plugin is a separate module. Generic code knows plugins only from the table in the module `plugins`.

mod always;
mod always_pull_images;
mod anti_affinity;
mod certificates;
mod chain;
mod claim_resize;
mod configuration;
mod configuration_kinds;
mod declared_features;
mod default_class;
mod derived_cache;
mod enabled_plugins;
mod event_rate_limit;
mod extended_resources;
mod external_ips;
mod image_policy;
mod in_use_protection;
mod index;
mod limit_ranger;
mod listing;
mod loaded_plugins;
mod matching;
mod metrics;
mod mutation;
mod namespace_exists;
mod namespace_lifecycle;
mod node_restriction;
mod node_taints;
mod options;
mod owner_references;
mod plugin;
mod plugin_flags;
mod plugin_reference;
mod plugins;
mod pod_node_selector;
mod pod_resize;
mod pod_security;
mod pod_toleration_restriction;
mod policies;
mod policy_metrics;
mod priority;
mod request_view;
mod resource_quota;
mod rounds;
mod runtime_class;
mod service_account;
mod settings;
mod step_metrics;
mod tolerations;
mod topology_labels;
mod validation;
mod webhooks;
mod write_target;

pub use chain::{AdmissionChain, Explanation};
pub use configuration::{Configuration, ConfigurationError};
pub use configuration_kinds::PluginConfigurationError;
pub use enabled_plugins::EnabledPlugins;
pub use image_policy::ImageBackend;
#[doc(hidden)]
pub use image_policy::read_any as read_any_image_review;
pub use plugin_flags::PluginNameError;
pub use plugin_reference::{PluginReference, plugin_reference};
pub use policies::{ExplainedBinding, ExplainedPolicy};
pub use resource_quota::{LimitedResource, MatchScope};
pub use settings::{AdmissionSettings, DefaultTolerations};
#[doc(hidden)]
pub use webhooks::read_any as read_any_answer;
pub use webhooks::{ExplainedWebhook, WebhookFailure};
