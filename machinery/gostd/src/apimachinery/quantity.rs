//! Quantities (`100m`, `1.5Gi`, `2e3`) as apimachinery's `resource.Quantity` reads, prints, rounds, adds and compares them.
//!
//! As there, a number of up to 18 digits is 64 bits with a power of ten, every other one a decimal. Which one it is shows in
//! what `value` and `milli_value` answer where 64 bits do not suffice, so it is part of the behaviour. A quantity that was
//! written in what upstream takes for its canonical form (`+1` and `0001` are) keeps its text until it is computed with.

mod decimal;
mod parse;
mod print;
#[cfg(test)]
mod recorded_tests;
mod small;

use std::cmp::Ordering;
use std::ops::{Add, Sub};

use decimal::{Decimal, power_of_ten};
use small::Small;

/// The power of ten of a thousandth.
const MILLI: i64 = -3;
/// The power of ten of a billionth: finer decimals are rounded away from zero.
const NANO: i64 = -9;

/// An amount of a resource. Compared by value: `1Ki` equals `1024`.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// How it was written, where that is kept.
    text: Option<Box<str>>,
}

/// How a number is kept.
#[derive(Clone, Debug)]
enum Amount {
    Small(Small),
    Decimal(Box<Decimal>),
}

/// Which suffixes it is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi`, ...
    Binary,
    /// `m`, `k`, `M`, ...
    Decimal,
    /// `e3`, `e6`, ...
    Exponent,
}

/// Why a text is no quantity, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Its number has no digits.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// Its suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self::whole(0);

    /// The greatest value whose thousandths 64 bits hold (`resource.MaxMilliValue`).
    pub const MAX_MILLI: i64 = i64::MAX / 1000;

    /// Bytes that its text and its digits take; of decimals as many as an addition may take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let digits = match &self.amount {
            Amount::Small(_) => 0,
            Amount::Decimal(decimal) => decimal.bytes(),
        };
        digits + self.text.as_ref().map_or(0, |text| text.len())
    }

    /// A whole number.
    #[must_use]
    pub const fn whole(number: i64) -> Self {
        Self { amount: Amount::Small(Small { value: number, scale: 0 }), format: Format::Decimal, text: None }
    }

    /// The quantity in a text; absent or unreadable text is nothing.
    #[must_use]
    pub fn lenient(text: &str) -> Self {
        text.parse().unwrap_or(Self::ZERO)
    }

    /// Rounded away from zero to thousandths, as upstream keeps resource lists (`Quantity.RoundUp`).
    #[must_use]
    pub fn rounded_to_milli(self) -> Self {
        let amount = match self.amount {
            Amount::Small(small) if small.scale >= MILLI => return self,
            Amount::Small(small) => Amount::Small(small.rounded_up(MILLI).0),
            Amount::Decimal(decimal) => Amount::Decimal(Box::new(decimal.rounded_up(MILLI).0)),
        };
        Self { amount, format: self.format, text: None }
    }

    /// The whole number, as `Quantity.Value`: rounded up; what 64 bits do not hold is 0 or wraps around, as there.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Thousandths, as `Quantity.MilliValue`; see [`Self::value`].
    #[must_use]
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI)
    }

    fn scaled_value(&self, scale: i64) -> i64 {
        match &self.amount {
            Amount::Small(small) => small.scaled_value(scale),
            Amount::Decimal(decimal) => decimal.scaled_value(scale),
        }
    }

    /// The integer that it is, where upstream finds that without decimals (`Quantity.AsInt64`).
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match &self.amount {
            Amount::Small(small) => small.integer(),
            Amount::Decimal(_) => None,
        }
    }

    /// A float about as large (`Quantity.AsApproximateFloat64`); infinite where there is none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
    pub fn approximate(&self) -> f64 {
        match &self.amount {
            Amount::Small(Small { value, scale: 0 }) => *value as f64,
            Amount::Small(Small { value, scale }) => *value as f64 * power_of_ten(*scale),
            Amount::Decimal(decimal) => decimal.approximate(),
        }
    }

    /// Whether it is a whole number of thousandths of thousandths, as upstream's validation asks (`MilliValue() % 1000`).
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.milli_value() % 1000 == 0
    }

    /// Whether it is a whole number of thousandths.
    #[must_use]
    pub fn is_milli(&self) -> bool {
        match &self.amount {
            Amount::Small(small) => small.rounded_up(MILLI).1,
            Amount::Decimal(decimal) => decimal.rounded_up(MILLI).1,
        }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn sign(&self) -> i64 {
        match &self.amount {
            Amount::Small(small) => small.value.signum(),
            Amount::Decimal(decimal) => decimal.sign(),
        }
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// Whether it is less than nothing.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.sign() < 0
    }

    /// Whether it is more than nothing.
    #[must_use]
    pub fn is_positive(&self) -> bool {
        self.sign() > 0
    }

    fn decimal(&self) -> Decimal {
        match &self.amount {
            Amount::Small(small) => small.decimal(),
            Amount::Decimal(decimal) => (**decimal).clone(),
        }
    }

    /// The sum. It is printed as its first part is, unless that is nothing.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        let small = match (&self.amount, &other.amount) {
            (Amount::Small(one), Amount::Small(two)) => one.plus(*two),
            _ => None,
        };
        let decimal = || Amount::Decimal(Box::new(self.decimal().plus(&other.decimal())));
        Self { amount: small.map_or_else(decimal, Amount::Small), format, text: None }
    }

    /// The difference, printed as [`Self::plus`] prints.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&other.clone().negated())
    }

    fn negated(self) -> Self {
        let amount = match self.amount {
            Amount::Small(small) => {
                Amount::Small(Small { value: small.value.wrapping_neg(), scale: small.scale })
            }
            Amount::Decimal(decimal) => Amount::Decimal(Box::new(decimal.negated())),
        };
        Self { amount, format: self.format, text: None }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.amount, &other.amount) {
            (Amount::Small(one), Amount::Small(two)) if one.scale == two.scale => one.value.cmp(&two.value),
            _ => self.decimal().compare(&other.decimal()),
        }
    }
}

impl Add<&Quantity> for Quantity {
    type Output = Self;

    fn add(self, other: &Self) -> Self {
        self.plus(other)
    }
}

impl Sub<&Quantity> for Quantity {
    type Output = Self;

    fn sub(self, other: &Self) -> Self {
        self.minus(other)
    }
}
