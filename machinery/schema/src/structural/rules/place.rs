//! Value to which rules apply.

use super::ratchet::Ratchet;
use super::tree::Tree;
use crate::structural::at::At;
use crate::structural::held::Held;

/// Value of the object to which rules apply.
#[derive(Clone, Copy)]
pub(super) struct Place<'r, 'a> {
    pub tree: &'a Tree,
    pub new: Held<'a>,
    pub old: Option<Held<'a>>,
    pub ratchet: Ratchet<'r, 'a>,
    pub at: &'r At<'r>,
}
