//! Value to which rules apply.

use super::ratchet::Ratchet;
use super::tree::RuleTree;
use crate::structural::location::Location;
use crate::structural::object_or_value::ObjectOrValue;

/// Value of the object to which rules apply.
#[derive(Clone, Copy)]
pub(super) struct RuleTarget<'r, 'a> {
    pub tree: &'a RuleTree,
    pub new: ObjectOrValue<'a>,
    pub old: Option<ObjectOrValue<'a>>,
    pub ratchet: Ratchet<'r, 'a>,
    pub location: &'r Location<'r>,
}
