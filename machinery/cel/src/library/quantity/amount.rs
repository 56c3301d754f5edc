//! Amounts as upstream keeps them: small ones as 64 bits with a power of ten, all others as decimals. Which one it is
//! shows: `1000m` is no integer, and `9e18` plus `9e18` is none any more.
//!
//! Decimals keep 36 digits, and anything may be written: no exponent makes work.

use std::cmp::Ordering;
use std::str::FromStr;

use portico_machinery::quantity::QuantityError;

/// The most digits of a decimal; what is behind them is dropped.
const MOST_DIGITS: u32 = 36;
/// The finest that is kept: billionths.
const NANO: i64 = -9;
/// Most digits of a number that is kept small.
const SMALL_DIGITS: usize = 18;

/// An amount: `1.5Gi`, `100m`.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// `value * 10^scale`.
    Small {
        /// The number.
        value: i64,
        /// The power of ten.
        scale: i64,
    },
    /// All others.
    Decimal(Decimal),
}

/// `mantissa * 10^exponent`; the mantissa has at most 36 digits.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    mantissa: i128,
    exponent: i64,
}

impl Decimal {
    /// The largest that has a binary suffix.
    const LARGEST_BINARY: Self = Self { mantissa: i64::MAX as i128, exponent: 0 };

    fn digits(self) -> u32 {
        self.mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1)
    }

    /// Without more digits than are kept.
    fn bounded(self) -> Self {
        let excess = self.digits().saturating_sub(MOST_DIGITS);
        Self { mantissa: self.mantissa / 10_i128.pow(excess), exponent: self.exponent + i64::from(excess) }
    }

    /// Without zeros at its end.
    fn trimmed(mut self) -> Self {
        while self.mantissa != 0 && self.mantissa % 10 == 0 {
            self = Self { mantissa: self.mantissa / 10, exponent: self.exponent + 1 };
        }
        self
    }

    /// With this exponent or the nearest that its digits allow.
    fn towards(self, exponent: i64) -> Self {
        let mut at = self;
        while at.exponent > exponent && at.digits() < MOST_DIGITS && at.mantissa != 0 {
            at = Self { mantissa: at.mantissa * 10, exponent: at.exponent - 1 };
        }
        at
    }

    /// In whole billionths, away from zero; `inexact`: something was dropped behind its digits.
    fn rounded_up(self, inexact: bool) -> Self {
        if self.mantissa == 0 || self.exponent >= NANO {
            return self;
        }
        let places = u32::try_from(NANO - self.exponent).unwrap_or(u32::MAX);
        let unit = 10_i128.checked_pow(places).filter(|_| places <= MOST_DIGITS);
        let (whole, rest) = unit.map_or((0, 1), |unit| (self.mantissa / unit, self.mantissa % unit));
        let up = if rest != 0 || inexact { self.mantissa.signum() } else { 0 };
        Self { mantissa: whole + up, exponent: NANO }
    }

    fn plus(self, other: Self) -> Self {
        if self.mantissa == 0 || other.mantissa == 0 {
            let exponent = self.exponent.min(other.exponent);
            let some = if self.mantissa == 0 { other } else { self };
            return some.towards(exponent);
        }
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let high = high.towards(low.exponent);
        // What is too fine beside the other is dropped.
        let places = u32::try_from(high.exponent - low.exponent).unwrap_or(u32::MAX);
        let low = 10_i128.checked_pow(places).map_or(0, |unit| low.mantissa / unit);
        Self { mantissa: high.mantissa + low, exponent: high.exponent }.bounded()
    }

    fn compare(self, other: Self) -> Ordering {
        let (one, two) = (self.trimmed(), other.trimmed());
        let sign = one.mantissa.signum();
        let magnitude = |decimal: Self| i64::from(decimal.digits()) + decimal.exponent;
        sign.cmp(&two.mantissa.signum()).then_with(|| {
            if sign == 0 {
                return Ordering::Equal;
            }
            let by_magnitude = magnitude(one).cmp(&magnitude(two));
            let by_magnitude = if sign < 0 { by_magnitude.reverse() } else { by_magnitude };
            let exponent = one.exponent.min(two.exponent);
            by_magnitude.then_with(|| one.towards(exponent).mantissa.cmp(&two.towards(exponent).mantissa))
        })
    }

    /// As near as upstream gets: the mantissa at its scale, times a power of ten.
    fn approximate(self) -> f64 {
        // What is coarser than billionths is held in these, unless it is whole by origin.
        let exponent = if self.exponent > 0 { NANO } else { self.exponent };
        float(self.mantissa, self.exponent - exponent) * float(1, exponent)
    }
}

fn float(mantissa: i128, exponent: i64) -> f64 {
    format!("{mantissa}e{exponent}").parse().unwrap_or_default()
}

impl Amount {
    /// A whole number.
    #[must_use]
    pub const fn whole(value: i64) -> Self {
        Self::Small { value, scale: 0 }
    }

    fn decimal(self) -> Decimal {
        match self {
            Self::Small { value, scale } => Decimal { mantissa: i128::from(value), exponent: scale },
            Self::Decimal(decimal) => decimal,
        }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn sign(self) -> i64 {
        match self {
            Self::Small { value, .. } => value.signum(),
            Self::Decimal(decimal) => i64::try_from(decimal.mantissa.signum()).unwrap_or_default(),
        }
    }

    /// The integer that it is, if it is a small one without a fraction in its spelling.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Small { value, scale: 0 } => Some(value),
            Self::Small { value, scale } => value.checked_mul(power(scale)?),
            Self::Decimal(_) => None,
        }
    }

    /// A float about as large; infinite where there is none.
    #[must_use]
    pub fn approximate(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
            Self::Small { value, scale: 0 } => value as f64,
            Self::Small { value, scale } => float(i128::from(value), 0) * float(1, scale),
            Self::Decimal(decimal) => decimal.approximate(),
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        small_sum(self, other).unwrap_or_else(|| Self::Decimal(self.decimal().plus(other.decimal())))
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    fn negated(self) -> Self {
        match self {
            Self::Small { value, scale } if value != i64::MIN => Self::Small { value: -value, scale },
            other => {
                let Decimal { mantissa, exponent } = other.decimal();
                Self::Decimal(Decimal { mantissa: -mantissa, exponent })
            }
        }
    }
}

fn power(scale: i64) -> Option<i64> {
    10_i64.checked_pow(u32::try_from(scale).ok()?)
}

fn small_sum(one: Amount, two: Amount) -> Option<Amount> {
    let (Amount::Small { value: a, scale: at }, Amount::Small { value: b, scale: bt }) = (one, two) else {
        return None;
    };
    if a == 0 || b == 0 {
        return Some(if b == 0 { one } else { two });
    }
    let scale = at.min(bt);
    let at_scale = |value: i64, from: i64| value.checked_mul(power(from - scale)?);
    Some(Amount::Small { value: at_scale(a, at)?.checked_add(at_scale(b, bt)?)?, scale })
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.decimal().compare(other.decimal())
    }
}

/// What a suffix multiplies with.
#[derive(Clone, Copy)]
enum Unit {
    /// 10 to a power.
    Ten(i64),
    /// 2 to a power.
    Two(u32),
}

fn unit(suffix: &str) -> Option<Unit> {
    const DECIMAL: [(&str, i64); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some(Unit::Ten(*power));
    }
    if let Some((_, power)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Some(Unit::Two(*power));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Upstream keeps 32 bits of it.
    #[expect(clippy::cast_possible_truncation, reason = "as upstream")]
    Some(Unit::Ten(i64::from(exponent as i32)))
}

impl FromStr for Amount {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('0');
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        check_suffix(suffix)?;
        let unit = unit(suffix).ok_or(QuantityError::Suffix)?;
        let whole = if whole.is_empty() { "0" } else { whole };
        let amount = small(whole, fraction, unit).unwrap_or_else(|| large(whole, fraction, unit));
        Ok(if negative { amount.negated() } else { amount })
    }
}

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn check_suffix(suffix: &str) -> Result<(), QuantityError> {
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits(exponent).1.is_empty() { Ok(()) } else { Err(QuantityError::Format) }
}

/// The amount as 64 bits, by upstream's rule of thumb: enough room by the number of digits.
fn small(whole: &str, fraction: &str, unit: Unit) -> Option<Amount> {
    let (factor, exponent) = match unit {
        Unit::Ten(exponent) if whole.len() + fraction.len() <= SMALL_DIGITS => (1, exponent),
        Unit::Two(power) if fraction.is_empty() && whole.len() + (power * 3 / 10) as usize <= 14 => {
            (1_i64.checked_shl(power)?, 0)
        }
        _ => return None,
    };
    let scale = exponent - i64::try_from(fraction.len()).ok()?;
    if scale < NANO {
        return None;
    }
    let value = format!("{whole}{fraction}").parse::<i64>().ok()?.checked_mul(factor)?;
    Some(Amount::Small { value, scale })
}

/// The amount as a decimal in whole billionths, rounded up; binary ones end at the largest that has 64 bits.
fn large(whole: &str, fraction: &str, unit: Unit) -> Amount {
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let kept = &significant[..significant.len().min(MOST_DIGITS as usize)];
    let dropped = &significant[kept.len()..];
    let inexact = dropped.bytes().any(|digit| digit != b'0');
    let places = |text: &str| i64::try_from(text.len()).unwrap_or(i64::from(i32::MAX));
    let number =
        Decimal { mantissa: kept.parse().unwrap_or_default(), exponent: places(dropped) - places(fraction) };
    let decimal = match unit {
        Unit::Ten(exponent) => {
            Decimal { exponent: number.exponent + exponent, ..number }.rounded_up(inexact).towards(NANO)
        }
        Unit::Two(power) => binary(number, power, inexact),
    };
    Amount::Decimal(decimal)
}

fn binary(number: Decimal, power: u32, inexact: bool) -> Decimal {
    // Twenty digits are more than 64 bits hold, with or without the power.
    if i64::from(number.digits()) + number.exponent > 20 {
        return Decimal::LARGEST_BINARY;
    }
    let factor = 1_i128 << power;
    // Keeps room for the factor: what is dropped is finer than billionths by far.
    let mut room = number;
    while room.mantissa.checked_mul(factor).is_none() {
        room = Decimal { mantissa: room.mantissa / 10, exponent: room.exponent + 1 };
    }
    let lost = inexact || room.exponent != number.exponent;
    let product =
        Decimal { mantissa: room.mantissa * factor, exponent: room.exponent }.rounded_up(lost).bounded();
    if product.compare(Decimal::LARGEST_BINARY) == Ordering::Greater {
        return Decimal::LARGEST_BINARY;
    }
    product.towards(NANO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn small_ones_without_a_fraction_are_integers() {
        for (text, want) in [
            ("0", Some(0)),
            ("Mi", Some(0)),
            (".", Some(0)),
            ("-", Some(0)),
            ("0k", Some(0)),
            ("00.00", None),
            ("1000m", None),
            ("1.0", None),
            ("1.00k", Some(1000)),
            ("1.5k", Some(1500)),
            ("1e3", Some(1000)),
            ("1E3", Some(1000)),
            ("9.2E", Some(9_200_000_000_000_000_000)),
            ("10E", None),
            ("1Gi", Some(1 << 30)),
            ("1.5Gi", None),
            ("1Ei", None),
            ("123456789012345678", Some(123_456_789_012_345_678)),
            ("1234567890123456789", None),
            ("-5k", Some(-5000)),
            ("1e4294967296", Some(1)),
        ] {
            assert_eq!(of(text).integer(), want, "{text}");
        }
    }

    #[test]
    fn floats_are_about_as_large() {
        for (text, want) in [
            ("9999999999999999999999999999999999999G", 1.000_000_000_000_000_1e46),
            ("9223372036854775807Ki", 9_223_372_036_854_775_807.0),
            ("1.5Gi", 1_610_612_736.0),
            ("1n", 1e-9),
            ("0.1n", 1e-9),
            ("1e400", f64::INFINITY),
            ("-1e2147483647", f64::NEG_INFINITY),
            ("1e-2147483647", 1e-9),
            ("0.00000000000000000000000000000001E", 1e-9),
            ("0.1Ki", 102.4),
            ("8Ei", 9_223_372_036_854_775_807.0),
            ("-1000Pi", -1.125_899_906_842_624_1e18),
            ("-9999999999999999999Ki", -9_223_372_036_854_775_807.0),
            ("1e-3", 0.001),
        ] {
            assert!((of(text).approximate() - want).abs() <= 0.0 || of(text).approximate() == want, "{text}");
        }
    }

    #[test]
    fn amounts_are_compared_added_and_subtracted() {
        let descending =
            ["1e301", "1e300", "9223372036854775808", "9223372036854775807", "1Gi", "1G", "1001m", "1"];
        assert!(descending.windows(2).all(|pair| of(pair[0]) > of(pair[1]) && of(pair[1]) < of(pair[0])));
        assert_eq!(of("1"), of("1000m"));
        assert_eq!(of("200M"), of("0.2G"));
        assert!(of("-2") < of("-1") && of("-1e300") < of("-1e299"));
        let largest = of("922337203685477580").plus(of("8e18"));
        assert!(largest.integer().is_some());
        assert_eq!(of("9223372036854775807").plus(Amount::whole(1)).integer(), None);
        assert_eq!(of("9223372036854775807").plus(Amount::whole(1)), of("9223372036854775808"));
        assert_eq!(of("50k").plus(of("20")).minus(of("100k")).minus(Amount::whole(-50_000)), of("20"));
        assert_eq!(of("1m").plus(of("999m")).integer(), None);
        assert_eq!(of("1e1000").plus(of("1")), of("1e1000"));
        assert_eq!(of("0").minus(of("1e300")).sign(), -1);
    }

    #[test]
    fn what_is_none_is_told_apart() {
        for text in ["", "abc", "1x", " 1", "1..2", "1.5.5", "1m5x", "1e1e", "١"] {
            assert_eq!(text.parse::<Amount>(), Err(QuantityError::Format), "{text}");
        }
        for text in ["1i", "+-1", "--1", "1E+", "1ee", "1k5", "1e99999999999999999999"] {
            assert_eq!(text.parse::<Amount>(), Err(QuantityError::Suffix), "{text}");
        }
    }
}
