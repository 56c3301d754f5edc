//! The namespace of a command: that of the flag, or, as with kubectl, of the kubeconfig's context.

use super::failure::Failure;
use crate::control_service::ControlService;

/// Namespace if neither the flag nor the context names one.
const DEFAULT: &str = "default";

#[derive(Debug, clap::Args)]
pub(super) struct Namespace {
    /// Namespace [default: that of the kubeconfig's context, else default]
    #[arg(long, short)]
    namespace: Option<String>,
}

impl Namespace {
    /// Returns the namespace; an empty flag is ignored, as by kubectl.
    pub(super) fn of(&self, control: &ControlService) -> Result<String, Failure> {
        if let Some(given) = self.namespace.as_ref().filter(|given| !given.is_empty()) {
            return Ok(given.clone());
        }
        Ok(control.namespace()?.unwrap_or(DEFAULT).to_owned())
    }
}
