//! Which namespace a verb is about: the flag's, or, as with kubectl, that of the kubeconfig's context.

use super::failure::Failure;
use crate::control_service::ControlService;

/// The namespace where no context names one.
const DEFAULT: &str = "default";

/// The flag.
#[derive(Debug, clap::Args)]
pub(super) struct Namespace {
    /// The namespace; without it, the one that the kubeconfig's context names, or default.
    #[arg(long, short)]
    namespace: Option<String>,
}

impl Namespace {
    /// The namespace; an empty one is none, as with kubectl.
    pub(super) fn of(&self, control: &ControlService) -> Result<String, Failure> {
        if let Some(given) = self.namespace.as_ref().filter(|given| !given.is_empty()) {
            return Ok(given.clone());
        }
        Ok(control.namespace()?.unwrap_or(DEFAULT).to_owned())
    }
}
