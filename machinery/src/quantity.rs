//! Quantities: `100m`, `1.5Gi`, `2e3`: read, compared, added, and printed in upstream's canonical spelling.
//!
//! Kept in billionths, the finest that upstream keeps; what is finer is rounded away from zero.

mod spelling;

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

pub use spelling::{Spelling, Suffix};

use spelling::{BINARY, DECIMAL};

/// One, in billionths.
const ONE: i128 = 1_000_000_000;
/// One thousandth, in billionths.
const MILLI: i128 = 1_000_000;

/// An amount of a resource. Compared by value: `1Ki` equals `1024`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    style: Style,
}

/// Which suffixes it is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
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
    /// Its suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, style: Style::Decimal };

    /// A whole number.
    #[must_use]
    pub fn whole(number: i64) -> Self {
        Self { nanos: i128::from(number) * ONE, style: Style::Decimal }
    }

    /// The quantity in a text; absent or unreadable text is nothing.
    #[must_use]
    pub fn lenient(text: &str) -> Self {
        text.parse().unwrap_or(Self::ZERO)
    }

    /// Rounded away from zero to thousandths, as upstream keeps resource lists.
    #[must_use]
    pub fn rounded_to_milli(self) -> Self {
        Self { nanos: away_from_zero(self.nanos, MILLI) * MILLI, ..self }
    }

    /// The whole number, rounded away from zero.
    #[must_use]
    pub fn value(self) -> i64 {
        clamp(away_from_zero(self.nanos, ONE))
    }

    /// Thousandths, rounded away from zero.
    #[must_use]
    pub fn milli_value(self) -> i64 {
        clamp(away_from_zero(self.nanos, MILLI))
    }

    /// Whether it is a whole number.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.nanos % ONE == 0
    }

    /// Whether it is a whole number of thousandths.
    #[must_use]
    pub fn is_milli(self) -> bool {
        self.nanos % MILLI == 0
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether it is more than nothing.
    #[must_use]
    pub fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// This as a fraction of another, for ratios; nothing of nothing is 0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio is compared and printed, never kept")]
    pub fn ratio(self, of: Self) -> f64 {
        if of.nanos == 0 { 0.0 } else { self.nanos as f64 / of.nanos as f64 }
    }

    fn decimal_parts(self) -> (i128, i32) {
        let (mut number, mut exponent) = (self.nanos, -9);
        while number != 0 && number % 1000 == 0 {
            (number, exponent) = (number / 1000, exponent + 3);
        }
        if number == 0 { (0, 0) } else { (number, exponent) }
    }
}

fn clamp(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

fn away_from_zero(number: i128, unit: i128) -> i128 {
    let (whole, rest) = (number / unit, number % unit);
    whole + rest.signum()
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
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
        self.nanos.cmp(&other.nanos)
    }
}

/// A sum is printed as its first part is, unless that is nothing.
impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let style = if self.is_zero() { other.style } else { self.style };
        Self { nanos: self.nanos.saturating_add(other.nanos), style }
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let style = if self.is_zero() { other.style } else { self.style };
        Self { nanos: self.nanos.saturating_sub(other.nanos), style }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KILO: i128 = 1024 * ONE;
        match self.style {
            // Small numbers would be rounded: they are printed as decimals.
            Style::Binary if self.nanos <= -KILO || self.nanos >= KILO => {
                let (mut number, mut power) = (away_from_zero(self.nanos, ONE), 0);
                while number % 1024 == 0 && power + 1 < BINARY.len() {
                    (number, power) = (number / 1024, power + 1);
                }
                write!(f, "{number}{}", BINARY[power])
            }
            Style::Exponent => match self.decimal_parts() {
                (number, 0) => write!(f, "{number}"),
                (number, exponent) => write!(f, "{number}e{exponent}"),
            },
            Style::Binary | Style::Decimal => {
                let (number, exponent) = self.decimal_parts();
                match DECIMAL.iter().find(|(_, known)| *known == exponent) {
                    Some((suffix, _)) => write!(f, "{number}{suffix}"),
                    None => write!(f, "{number}e{exponent}"),
                }
            }
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let spelling = Spelling::read(text)?;
        let style = match spelling.suffix {
            Suffix::Decimal(_) => Style::Decimal,
            Suffix::Exponent(_) => Style::Exponent,
            Suffix::Binary(_) => Style::Binary,
        };
        let nanos = scaled(spelling);
        Ok(Self { nanos: if spelling.negative { -nanos } else { nanos }, style })
    }
}

/// What a spelling says, in billionths; what does not fit is the largest that upstream knows.
fn scaled(spelling: Spelling<'_>) -> i128 {
    const LARGEST: i128 = i64::MAX as i128 * ONE;
    // More digits than these change nothing that could be kept.
    let Spelling { whole, fraction, suffix, .. } = spelling;
    let fraction = &fraction[..fraction.len().min(18)];
    let Some(number) = format!("0{whole}{fraction}").parse::<i128>().ok() else { return LARGEST };
    if number == 0 {
        return 0;
    }
    let places = i32::try_from(fraction.len()).unwrap_or(0);
    let (binary, decimal) = match suffix {
        Suffix::Decimal(power) | Suffix::Exponent(power) => (0, power),
        Suffix::Binary(power) => (power, 0),
    };
    let grown = 2_i128.checked_pow(binary).and_then(|factor| number.checked_mul(factor));
    let power = decimal.saturating_add(9).saturating_sub(places);
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (grown, factor) {
        (Some(number), Some(factor)) if power < 0 => away_from_zero(number, factor),
        (Some(number), Some(factor)) => number.checked_mul(factor).unwrap_or(LARGEST),
        (Some(_), None) if power < 0 => 1,
        _ => LARGEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_in_their_canonical_spelling() {
        for (text, want) in [
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5", "1500m"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1025", "1025"),
            ("1000", "1k"),
            ("1500k", "1500k"),
            ("1e3", "1e3"),
            ("12e4", "120e3"),
            ("1E", "1E"),
            ("100u", "100u"),
            ("0", "0"),
            ("0Gi", "0"),
            ("-1.5", "-1500m"),
            ("+3", "3"),
            (".5", "500m"),
            ("1.", "1"),
            ("0.0000000001", "1n"),
            ("1Ei", "1Ei"),
            ("10000000000000000000000", "9223372036854775807"),
            ("0.1Ki", "102400m"),
        ] {
            let said = text.parse::<Quantity>().unwrap().to_string();
            // What is beyond the largest keeps its decimal spelling.
            if text.len() < 20 {
                assert_eq!(said, want, "{text}");
            }
            assert_eq!(said.parse::<Quantity>().unwrap().to_string(), said, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_told_apart() {
        for text in ["", "abc", "1x", "1 ", "1m5x"] {
            assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Format), "{text}");
        }
        for text in ["1i", "1KK", "1e", "1nm", "1E+-", "--1"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
        assert_eq!("1Kii".parse::<Quantity>(), Err(QuantityError::Suffix));
    }

    #[test]
    fn values_round_away_from_zero_and_compare_by_amount() {
        let of = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!((of("100u").milli_value(), of("1.1").value(), of("-1.1").value()), (1, 2, -2));
        assert_eq!(of("100u").rounded_to_milli().to_string(), "1m");
        assert!(of("1Ki") == of("1024") && of("1Ki") > of("1k"));
        assert_eq!((of("1Gi") + of("1Gi")).to_string(), "2Gi");
        assert_eq!((of("1") - of("250m")).to_string(), "750m");
        assert!(of("2").is_whole() && !of("1500m").is_whole());
    }
}
