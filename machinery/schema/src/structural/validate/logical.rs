//! Logical operators: allOf, anyOf, oneOf, not. If no branch matches, reports the branch with the most matches.

use super::outcome::Outcome;
use super::view::View;
use super::{Checks, Validator};

/// Failed branch with the most matches; the first one if several have the same number.
#[derive(Default)]
struct ClosestBranch(Option<Outcome>);

impl ClosestBranch {
    fn offer(&mut self, branch: Outcome) {
        if self.0.as_ref().is_none_or(|best| branch.matches() > best.matches()) {
            self.0 = Some(branch);
        }
    }
}

impl Validator<'_> {
    /// Validates the logical operators. Branches have no old values: ratcheting covers the whole value or nothing.
    pub(super) fn logical_operators(&mut self, view: View<'_>, checks: &Checks, out: &mut Outcome) {
        self.any_of(view, checks, out);
        self.one_of(view, checks, out);
        self.all_of(view, checks, out);
        if let Some(not) = &checks.not
            && self.node(view, not, None, out.budget()).is_valid()
        {
            self.error_without_field(|| format!("{:?} must not validate the schema (not)", self.path), out);
        }
    }

    fn any_of(&mut self, view: View<'_>, checks: &Checks, out: &mut Outcome) {
        if checks.any_of.is_empty() {
            return;
        }
        let mut closest = ClosestBranch::default();
        for branch in &checks.any_of {
            let branch = self.node(view, branch, None, out.budget());
            if branch.is_valid() {
                out.merge(branch);
                return;
            }
            closest.offer(branch);
        }
        self.error_without_field(
            || format!("{:?} must validate at least one schema (anyOf)", self.path),
            out,
        );
        closest.0.into_iter().for_each(|branch| out.merge(branch));
    }

    fn one_of(&mut self, view: View<'_>, checks: &Checks, out: &mut Outcome) {
        if checks.one_of.is_empty() {
            return;
        }
        let (mut closest, mut first, mut valid) = (ClosestBranch::default(), None, 0_usize);
        for branch in &checks.one_of {
            let branch = self.node(view, branch, None, out.budget());
            if branch.is_valid() {
                valid += 1;
                first.get_or_insert(branch);
            } else if valid == 0 {
                closest.offer(branch);
            }
        }
        if valid == 1 {
            first.into_iter().for_each(|branch| out.merge(branch));
            return;
        }
        let found = if valid == 0 { "none valid".to_owned() } else { format!("{valid} valid alternatives") };
        let text = || format!("{:?} must validate one and only one schema (oneOf). Found {found}", self.path);
        self.error_without_field(text, out);
        closest.0.filter(|_| valid == 0).into_iter().for_each(|branch| out.merge(branch));
    }

    fn all_of(&mut self, view: View<'_>, checks: &Checks, out: &mut Outcome) {
        let mut valid = 0;
        for branch in &checks.all_of {
            let branch = self.node(view, branch, None, out.budget());
            valid += usize::from(branch.is_valid());
            out.merge(branch);
        }
        if valid < checks.all_of.len() {
            let more = if valid == 0 { ". None validated" } else { "" };
            self.error_without_field(
                || format!("{:?} must validate all the schemas (allOf){more}", self.path),
                out,
            );
        }
    }
}
