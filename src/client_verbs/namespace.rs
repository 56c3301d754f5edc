//! Namespace of a command: the value of `--namespace`, or else, as in kubectl, the namespace of the kubeconfig's context.

use super::failure::Failure;
use crate::control_service::ControlService;

/// Namespace if neither `--namespace` nor the context names a namespace.
const DEFAULT: &str = "default";

#[derive(Debug, clap::Args)]
pub(super) struct Namespace {
    /// Namespace of the objects [default: namespace of the kubeconfig's context, or else default]
    #[arg(long, short)]
    namespace: Option<String>,
}

impl Namespace {
    /// Returns the namespace. An empty value of `--namespace` is ignored, as in kubectl.
    pub(super) fn resolve(&self, control: &ControlService) -> Result<String, Failure> {
        if let Some(namespace) = self.namespace.as_ref().filter(|name| !name.is_empty()) {
            return Ok(namespace.clone());
        }
        Ok(control.namespace()?.unwrap_or(DEFAULT).to_owned())
    }
}
