//! Resource quantities (`100m`, `1.5Gi`, `2e3`) that parse, print, round, add and compare like `resource.Quantity`.
//!
//! ```
//! use portico_gostd::apimachinery::Quantity;
//!
//! let cpu: Quantity = "1500m".parse()?;
//! assert_eq!((cpu.value(), cpu.milli_value()), (2, 1500));
//! let memory = "1Gi".parse::<Quantity>()? + &"512Mi".parse()?;
//! assert_eq!(memory.to_string(), "1536Mi");
//! assert!(memory > Quantity::whole(1_000_000));
//! # Ok::<(), portico_gostd::apimachinery::QuantityError>(())
//! ```
//!
//! A number of up to 18 digits is stored, as in Go, as a 64-bit integer with a power of ten, any other number as a decimal. The
//! representation determines the result of `value` and `milli_value` on overflow. A quantity in a form that Go considers
//! canonical (including `+1` and `0001`) keeps its text until it is used in arithmetic.

mod decimal;
mod parse;
mod print;
#[cfg(test)]
mod recorded_tests;
mod small;

use std::cmp::Ordering;
use std::ops::{Add, Sub};

use decimal::{Decimal, power_of_ten};
use small::Int64Amount;

/// Power of ten of a thousandth.
const MILLI: i64 = -3;
/// Power of ten of a billionth. Smaller fractions are rounded away from zero.
const NANO: i64 = -9;

/// Amount of a resource. Ordered and compared by value: `1Ki` equals `1024`. [`Display`](std::fmt::Display) prints Go's
/// canonical form.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// Original text, if it is kept.
    text: Option<Box<str>>,
}

/// Representation of a number.
#[derive(Clone, Debug)]
enum Amount {
    Small(Int64Amount),
    Decimal(Box<Decimal>),
}

/// Suffixes for printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi`, ...
    Binary,
    /// `m`, `k`, `M`, ...
    Decimal,
    /// `e3`, `e6`, ...
    Exponent,
}

/// Reason why a text is not a quantity, with Go's message.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number has no digits.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Quantity with the value zero.
    pub const ZERO: Self = Self::whole(0);

    /// Largest value whose thousandths fit into 64 bits (`resource.MaxMilliValue`).
    pub const MAX_MILLI: i64 = i64::MAX / 1000;

    /// Returns the size of the text and digits in memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let digits = match &self.amount {
            Amount::Small(_) => 0,
            Amount::Decimal(decimal) => decimal.bytes(),
        };
        digits + self.text.as_ref().map_or(0, |text| text.len())
    }

    /// Returns a quantity with this integer value.
    #[must_use]
    pub const fn whole(number: i64) -> Self {
        Self {
            amount: Amount::Small(Int64Amount { value: number, scale: 0 }),
            format: Format::Decimal,
            text: None,
        }
    }

    /// Parses a quantity; returns zero for empty or invalid text.
    #[must_use]
    pub fn lenient(text: &str) -> Self {
        text.parse().unwrap_or(Self::ZERO)
    }

    /// Rounds away from zero to thousandths (`Quantity.RoundUp`), as kube-apiserver stores resource lists.
    #[must_use]
    pub fn rounded_to_milli(self) -> Self {
        let amount = match self.amount {
            Amount::Small(small) if small.scale >= MILLI => return self,
            Amount::Small(small) => Amount::Small(small.rounded_up(MILLI).0),
            Amount::Decimal(decimal) => Amount::Decimal(Box::new(decimal.rounded_up(MILLI).0)),
        };
        Self { amount, format: self.format, text: None }
    }

    /// Returns the value rounded up to an integer (`Quantity.Value`). On overflow, the result is 0 or wraps around, as in Go.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Returns the value in thousandths, rounded up (`Quantity.MilliValue`). Overflows like [`Self::value`].
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

    /// Returns the value if it is an integer in the 64-bit representation (`Quantity.AsInt64`).
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match &self.amount {
            Amount::Small(small) => small.integer(),
            Amount::Decimal(_) => None,
        }
    }

    /// Returns the nearest float, or infinity (`Quantity.AsApproximateFloat64`).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
    pub fn approximate(&self) -> f64 {
        match &self.amount {
            Amount::Small(Int64Amount { value, scale: 0 }) => *value as f64,
            Amount::Small(Int64Amount { value, scale }) => *value as f64 * power_of_ten(*scale),
            Amount::Decimal(decimal) => decimal.approximate(),
        }
    }

    /// True if `milli_value` is divisible by 1000, as kube-apiserver validates integer resources.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.milli_value() % 1000 == 0
    }

    /// True if the value is a multiple of a thousandth.
    #[must_use]
    pub fn is_milli(&self) -> bool {
        match &self.amount {
            Amount::Small(small) => small.rounded_up(MILLI).1,
            Amount::Decimal(decimal) => decimal.rounded_up(MILLI).1,
        }
    }

    /// Returns the sign: -1, 0 or 1.
    #[must_use]
    pub fn sign(&self) -> i64 {
        match &self.amount {
            Amount::Small(small) => small.value.signum(),
            Amount::Decimal(decimal) => decimal.sign(),
        }
    }

    /// True if the value is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// True if the value is less than zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.sign() < 0
    }

    /// True if the value is greater than zero.
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

    /// Returns the sum. It has the suffixes of the first operand, or of the second if the first is zero.
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

    /// Returns the difference, with suffixes as for [`Self::plus`].
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&other.clone().negated())
    }

    fn negated(self) -> Self {
        let amount = match self.amount {
            Amount::Small(small) => {
                Amount::Small(Int64Amount { value: small.value.wrapping_neg(), scale: small.scale })
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
