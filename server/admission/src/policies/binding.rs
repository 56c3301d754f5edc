//! Bindings: scope, parameters and actions of a policy.

use portico_machinery::Object;

use super::params::ParamRef;
use crate::matching::Constraints;

/// Consequence of a failed validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Deny,
    Warn,
    Audit,
}

/// Binding of a validating or mutating policy.
pub(super) struct Binding {
    pub(super) name: String,
    /// Name of the bound policy.
    pub(super) policy: String,
    /// `None` if the binding applies wherever the policy does.
    pub(super) constraints: Option<Constraints>,
    pub(super) params: Option<ParamRef>,
    pub(super) actions: Vec<Action>,
}

impl Action {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "Deny" => Self::Deny,
            "Warn" => Self::Warn,
            "Audit" => Self::Audit,
            _ => return None,
        })
    }

    /// Returns the value of the metric label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Audit => "audit",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

impl Binding {
    pub(super) fn read(object: &Object) -> Self {
        let spec = object.at(&["spec"]);
        let (resources, params) = (spec.field("matchResources"), spec.field("paramRef"));
        Self {
            name: object.name().to_owned(),
            policy: spec.field("policyName").str().to_owned(),
            constraints: resources.is_present().then(|| Constraints::of_policy(&resources)),
            params: params.is_present().then(|| ParamRef::read(&params)),
            actions: spec
                .field("validationActions")
                .items()
                .filter_map(|at| Action::read(at.str()))
                .collect(),
        }
    }
}
