//! Configuration of the webhook plugins (upstream's `WebhookAdmissionConfiguration`): the credentials for calls.

use std::path::{Path, PathBuf};

use portico_machinery::features::FeatureGates;
use portico_machinery::field::Error;

use crate::configuration_kinds::{ConfigKind, PluginConfigurationError, Scheme, must_exist};

const SCHEME: Scheme = Scheme {
    kinds: &[ConfigKind {
        version: "apiserver.config.k8s.io/v1",
        kind: "WebhookAdmissionConfiguration",
        ty: "WebhookAdmission",
    }],
    types: r#"{"WebhookAdmission": {"fields": {
        "kind": {"type": "string"}, "apiVersion": {"type": "string"},
        "kubeConfigFile": {"type": "string"}, "staticManifestsDir": {"type": "string"}
    }}}"#,
    strict: true,
};

/// Name of the gate for manifests in a folder, which Portico does not read.
const MANIFESTS: &str = "ManifestBasedAdmissionControlConfig";

/// Configuration of a webhook plugin.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookPluginConfiguration {
    /// Kubeconfig with the users as which webhooks are called, by host.
    pub(crate) kube_config_file: Option<PathBuf>,
}

impl WebhookPluginConfiguration {
    /// Reads a configuration. Without one, webhooks are called without credentials.
    pub(crate) fn read(
        bytes: Option<&[u8]>,
        features: &FeatureGates,
    ) -> Result<Self, PluginConfigurationError> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let object = SCHEME.decode(bytes)?;
        let (file, folder) = (object.at(&["kubeConfigFile"]), object.at(&["staticManifestsDir"]));
        if !file.str().is_empty() && !Path::new(file.str()).is_absolute() {
            return Err(invalid(file.invalid_text("must be an absolute file path")));
        }
        if !folder.str().is_empty() {
            let message = if features.enabled(MANIFESTS) {
                "manifests in a folder are not read here"
            } else {
                "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"
            };
            return Err(invalid(folder.forbidden(message)));
        }
        let file = Some(file.str()).filter(|file| !file.is_empty()).map(PathBuf::from);
        if let Some(file) = &file {
            must_exist(file)?;
        }
        Ok(Self { kube_config_file: file })
    }
}

fn invalid(error: Error) -> PluginConfigurationError {
    PluginConfigurationError::Invalid(vec![error])
}
