//! Ranges of sizes and costs with saturating arithmetic, and the constants of cel-go's and kube-apiserver's estimates.

use std::marker::PhantomData;

/// Cost of one expression of a policy.
///
/// The limit of kube-apiserver. `--admission-expression-cost-limit` is reached first unless it is higher.
///
/// Limit (Expressions, cost units): the expression fails.
pub const DEFAULT_COST_LIMIT: u64 = 1_000_000;
/// Cost of one character of a string (or byte) that is read.
pub const STRING_TRAVERSAL: f64 = 0.1;
/// Cost of one character of a regular expression, per unit of the string's cost.
pub const REGEX_LENGTH: f64 = 0.25;
/// Cost of naming a variable or a field.
pub const SELECT_AND_IDENT: u64 = 1;
/// Cost of a list literal.
pub const LIST_CREATE: u64 = 10;
/// Cost of a map literal.
pub const MAP_CREATE: u64 = 30;
/// Cost of an object literal.
pub const STRUCT_CREATE: u64 = 40;

/// An inclusive range. The unit distinguishes sizes from costs.
#[derive(Debug)]
pub struct Range<Unit> {
    /// Lower bound, inclusive.
    pub min: u64,
    /// Maximum; `u64::MAX` if unbounded.
    pub max: u64,
    unit: PhantomData<Unit>,
}

/// Unit of [`SizeEstimate`].
#[derive(Debug)]
pub enum SizeUnit {}

/// Unit of [`CostEstimate`].
#[derive(Debug)]
pub enum Costs {}

/// Range of a number of characters, bytes, items or entries.
pub type SizeEstimate = Range<SizeUnit>;
/// Range of costs.
pub type CostEstimate = Range<Costs>;

impl<Unit> Range<Unit> {
    /// Returns the range from `min` to `max`.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max, unit: PhantomData }
    }

    /// Returns the range of one number.
    #[must_use]
    pub const fn fixed(number: u64) -> Self {
        Self::new(number, number)
    }

    /// Returns the sum of two ranges.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Returns the product of two ranges.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        self.with(other, u64::saturating_mul)
    }

    /// Returns the smallest range that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self::new(self.min.min(other.min), self.max.max(other.max))
    }

    /// Returns the cost with this factor for each unit of size, rounded up.
    #[must_use]
    pub fn times_factor(self, each: f64) -> CostEstimate {
        CostEstimate::new(scale(self.min, each), scale(self.max, each))
    }

    fn with<Other, Result>(self, other: Range<Other>, of: impl Fn(u64, u64) -> u64) -> Range<Result> {
        Range::new(of(self.min, other.min), of(self.max, other.max))
    }
}

impl SizeEstimate {
    /// Unknown size.
    pub const UNKNOWN: Self = Self::new(0, u64::MAX);

    /// Returns the cost with this range for each unit of size.
    #[must_use]
    pub fn times_cost(self, each: CostEstimate) -> CostEstimate {
        self.with(each, u64::saturating_mul)
    }
}

impl CostEstimate {
    /// Cost of zero units.
    pub const ZERO: Self = Self::fixed(0);
    /// One unit: the default cost of an operation.
    pub const ONE: Self = Self::fixed(1);
}

// Not derived: derives require the traits of the unit, which has no values.
impl<Unit> Clone for Range<Unit> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Unit> Copy for Range<Unit> {}

impl<Unit> PartialEq for Range<Unit> {
    fn eq(&self, other: &Self) -> bool {
        (self.min, self.max) == (other.min, other.max)
    }
}

impl<Unit> Eq for Range<Unit> {}

/// Returns `size * factor`, rounded up; saturates at the maximum.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as upstream; saturates"
)]
pub fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_saturate_at_the_end_of_the_range() {
        assert_eq!(SizeEstimate::UNKNOWN.times_factor(0.25).max, 4_611_686_018_427_387_904);
        assert_eq!(SizeEstimate::UNKNOWN.times_cost(CostEstimate::fixed(2)).max, u64::MAX);
        assert_eq!(scale(u64::MAX, 1.0), u64::MAX);
        assert_eq!(SizeEstimate::fixed(11).times_factor(STRING_TRAVERSAL), CostEstimate::fixed(2));
    }
}
