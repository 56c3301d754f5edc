//! Plans: trees made ready to run, with variables as slots, overloads resolved and constants computed.

mod attribute;
mod build;
mod call;
mod fold;
mod node;

use crate::check::Checked;
use crate::meter::Meter;
use crate::variable::Variable;
pub(crate) use call::IN_ERROR;
pub(crate) use node::{Attribute, Base, By, CallNode, Computed, Fold, Node, Step};

/// A plan with what it needs of its surroundings.
#[derive(Debug)]
pub(crate) struct Plan {
    pub root: Node,
    /// True for each variable of the environment that the plan reads.
    pub uses: Vec<bool>,
}

/// Plans a checked tree; the meter pays for regular expressions.
///
/// # Errors
/// A constant part can never work: `int('x')`, a regular expression that is none.
#[cfg_attr(not(feature = "regex"), expect(unused_variables, reason = "there are no patterns"))]
pub(crate) fn plan(variables: &[Variable], checked: &Checked, meter: &Meter) -> Result<Plan, String> {
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
