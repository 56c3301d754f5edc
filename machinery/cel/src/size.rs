//! Ranges of sizes and of costs, with saturating arithmetic, and what characters cost: the numbers of cel-go's and
//! kube-apiserver's estimates. They appear in messages, so they are upstream's exactly.

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

/// A range of numbers of characters, bytes, items or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeEstimate {
    /// The least.
    pub min: u64,
    /// The most; `u64::MAX` is unbounded.
    pub max: u64,
}

/// A range of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostEstimate {
    /// The least.
    pub min: u64,
    /// The most; `u64::MAX` is unbounded.
    pub max: u64,
}

impl SizeEstimate {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// From `min` to `max`.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// Exactly this.
    #[must_use]
    pub const fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of both.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// What covers both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// A cost per unit, rounded up.
    #[must_use]
    pub fn times_factor(self, per_unit: f64) -> CostEstimate {
        CostEstimate { min: scale(self.min, per_unit), max: scale(self.max, per_unit) }
    }

    /// A cost per unit that is a range.
    #[must_use]
    pub fn times_cost(self, cost: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_mul(cost.min), max: self.max.saturating_mul(cost.max) }
    }
}

impl CostEstimate {
    /// Nothing at all.
    pub const ZERO: Self = Self::fixed(0);
    /// One unit: what an operation costs that says nothing else.
    pub const ONE: Self = Self::fixed(1);

    /// From `min` to `max`.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// Exactly this.
    #[must_use]
    pub const fn fixed(cost: u64) -> Self {
        Self { min: cost, max: cost }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of both.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Multiplied by a factor, rounded up.
    #[must_use]
    pub fn times_factor(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// What covers both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// `size * factor`, rounded up; what leaves the range is its end.
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
    fn products_end_at_the_end_of_the_range() {
        assert_eq!(SizeEstimate::UNKNOWN.times_factor(0.25).max, 4_611_686_018_427_387_904);
        assert_eq!(SizeEstimate::UNKNOWN.times_cost(CostEstimate::fixed(2)).max, u64::MAX);
        assert_eq!(scale(u64::MAX, 1.0), u64::MAX);
        assert_eq!(SizeEstimate::fixed(11).times_factor(STRING_TRAVERSAL), CostEstimate::fixed(2));
    }
}
