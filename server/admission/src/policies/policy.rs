//! Parts that policies of both kinds share.

use portico_machinery::{Cursor, Object};

use super::params::ParamKind;
use crate::matching::Constraints;

/// Policy with its compiled expressions.
pub(super) struct Policy<E> {
    pub(super) name: String,
    /// True if a request fails when the policy cannot be evaluated.
    pub(super) fails_closed: bool,
    pub(super) constraints: Constraints,
    pub(super) params: Option<ParamKind>,
    pub(super) evaluator: E,
}

/// Expressions that both kinds have.
pub(super) struct CommonExpressions<'s> {
    pub(super) conditions: Vec<&'s str>,
    pub(super) variables: Vec<(&'s str, &'s str)>,
}

impl<E> Policy<E> {
    pub(super) fn read(object: &Object, evaluator: E) -> Self {
        let spec = object.at(&["spec"]);
        let params = spec.field("paramKind");
        Self {
            name: object.name().to_owned(),
            fails_closed: fails_closed(&spec),
            constraints: Constraints::of_policy(&spec.field("matchConstraints")),
            params: params.is_present().then(|| ParamKind::read(&params)),
            evaluator,
        }
    }
}

impl<'s> CommonExpressions<'s> {
    pub(super) fn read(spec: &Cursor<'s>) -> Self {
        let (conditions, variables) = (spec.field("matchConditions"), spec.field("variables"));
        let variable = |at: Cursor<'s>| (at.field("name").str(), at.field("expression").str());
        Self {
            conditions: conditions.items().map(|at| at.field("expression").str()).collect(),
            variables: variables.items().map(variable).collect(),
        }
    }
}

/// True if the failure policy is `Fail`.
pub(super) fn fails_closed(spec: &Cursor<'_>) -> bool {
    spec.field("failurePolicy").str() != "Ignore"
}
