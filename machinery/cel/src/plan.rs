//! Plans: trees prepared for evaluation, with variables as slots, resolved overloads and computed constants.

mod attribute;
mod build;
mod call;
mod fold;
mod node;

use crate::check::CheckedAst;
use crate::meter::Meter;
use crate::variable::Variable;
pub(crate) use call::IN_ERROR;
pub(crate) use node::{Attribute, Base, CallNode, ComputedConstant, Fold, Node, Step, StepKey};

/// Plan with the variables that it uses.
#[derive(Debug)]
pub(crate) struct Plan {
    pub root: Node,
    /// True for each variable of the environment that the plan reads.
    pub uses: Vec<bool>,
}

/// Plans a checked tree; the meter pays for regular expressions.
///
/// # Errors
/// A constant part always fails: `int('x')`, an invalid regular expression.
#[cfg_attr(not(feature = "regex"), expect(unused_variables, reason = "there are no patterns"))]
pub(crate) fn plan(variables: &[Variable], checked: &CheckedAst, meter: &Meter) -> Result<Plan, String> {
    let mut planner = build::Planner {
        checked,
        variables,
        #[cfg(feature = "regex")]
        meter,
        uses: vec![false; variables.len()],
        locals: Vec::new(),
    };
    let root = planner.node(&checked.expr)?;
    Ok(Plan { root, uses: planner.uses })
}
