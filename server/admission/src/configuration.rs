//! `--admission-control-config-file`: configuration of the plugins, read and checked before the server serves requests
//! (upstream's `ReadAdmissionConfiguration` and the loader of each plugin). Sections of disabled plugins are ignored.

mod error;
mod file;

use std::path::Path;

use portico_machinery::features::FeatureGates;

pub use error::ConfigurationError;

use crate::enabled_plugins::EnabledPlugins;
use crate::event_rate_limit::EventRateLimitConfiguration;
use crate::image_policy::{ImageBackend, ImagePolicyConfiguration};
use crate::pod_node_selector::PodNodeSelectorConfiguration;
use crate::pod_security::PodSecurityConfiguration;
use crate::pod_toleration_restriction::PodTolerationRestrictionConfiguration;
use crate::resource_quota::{LimitedResource, QuotaConfiguration};
use crate::webhooks::WebhookPluginConfiguration;

/// Configuration of all plugins; the default configuration for disabled plugins.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    pub(crate) event_rate_limit: EventRateLimitConfiguration,
    pub(crate) image_policy: ImagePolicyConfiguration,
    pub(crate) mutating_webhook: WebhookPluginConfiguration,
    pub(crate) pod_node_selector: PodNodeSelectorConfiguration,
    pub(crate) pod_security: PodSecurityConfiguration,
    pub(crate) pod_toleration_restriction: PodTolerationRestrictionConfiguration,
    pub(crate) resource_quota: QuotaConfiguration,
    pub(crate) validating_webhook: WebhookPluginConfiguration,
}

impl Configuration {
    /// Reads the file, if one is given, and the sections and files of the enabled plugins.
    ///
    /// # Errors
    /// [`ConfigurationError`] with upstream's message.
    pub fn read(
        path: Option<&Path>,
        plugins: &EnabledPlugins,
        features: &FeatureGates,
    ) -> Result<Self, ConfigurationError> {
        let file = file::Sections::read(path, plugins)?;
        let mut configuration = Self::default();
        let Self {
            event_rate_limit,
            image_policy,
            mutating_webhook,
            pod_node_selector,
            pod_security,
            pod_toleration_restriction,
            resource_quota,
            validating_webhook,
        } = &mut configuration;
        file.section("EventRateLimit", event_rate_limit, EventRateLimitConfiguration::read)?;
        file.section("ImagePolicyWebhook", image_policy, ImagePolicyConfiguration::read)?;
        file.section("PodNodeSelector", pod_node_selector, PodNodeSelectorConfiguration::read)?;
        file.section("PodSecurity", pod_security, PodSecurityConfiguration::read)?;
        let tolerations = pod_toleration_restriction;
        file.section("PodTolerationRestriction", tolerations, PodTolerationRestrictionConfiguration::read)?;
        file.section("ResourceQuota", resource_quota, QuotaConfiguration::read)?;
        let webhooks = |source: Option<&[u8]>| WebhookPluginConfiguration::read(source, features);
        file.section("MutatingAdmissionWebhook", mutating_webhook, webhooks)?;
        file.section("ValidatingAdmissionWebhook", validating_webhook, webhooks)?;
        Ok(configuration)
    }

    /// Returns the kubeconfig with the users as which mutating webhooks are called.
    #[must_use]
    pub fn mutating_webhook_kubeconfig(&self) -> Option<&Path> {
        self.mutating_webhook.kube_config_file.as_deref()
    }

    /// Returns the kubeconfig with the users as which validating webhooks are called.
    #[must_use]
    pub fn validating_webhook_kubeconfig(&self) -> Option<&Path> {
        self.validating_webhook.kube_config_file.as_deref()
    }

    /// Returns the kubeconfig that names the backend of ImagePolicyWebhook.
    #[must_use]
    pub fn image_policy_kubeconfig(&self) -> Option<&Path> {
        self.image_policy.kube_config_file.as_deref()
    }

    /// Sets the backend of ImagePolicyWebhook.
    #[must_use]
    pub fn with_image_backend(mut self, backend: ImageBackend) -> Self {
        self.image_policy.backend = backend;
        self
    }

    /// Returns the resources that require a covering quota.
    #[must_use]
    pub fn limited_resources(&self) -> &[LimitedResource] {
        &self.resource_quota.limited_resources
    }
}

#[cfg(test)]
mod tests;
