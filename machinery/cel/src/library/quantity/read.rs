//! Amounts as they are written: by upstream's rule of thumb small ones, or decimals in whole billionths.

use std::cmp::Ordering;
use std::str::FromStr;

use portico_machinery::quantity::{QuantityError, Spelling, Suffix};

use super::amount::Amount;
use super::decimal::{Decimal, MOST_DIGITS, NANO};

/// Most digits of a number that is kept small.
const SMALL_DIGITS: usize = 18;
/// As many are left to one with a binary suffix, whose own count.
const SMALL_BINARY_DIGITS: usize = 14;
/// Twenty digits are more than 64 bits hold, with or without a binary suffix.
const MOST_BINARY_DIGITS: i64 = 20;

impl FromStr for Amount {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let spelling = Spelling::read(text)?;
        let whole = match spelling.whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        let spelling = Spelling { whole, ..spelling };
        let amount = small(spelling).unwrap_or_else(|| large(spelling));
        Ok(if spelling.negative { amount.negated() } else { amount })
    }
}

/// The amount as 64 bits, by upstream's rule of thumb: enough room by the number of digits.
fn small(Spelling { whole, fraction, suffix, .. }: Spelling<'_>) -> Option<Amount> {
    let digits = whole.len() + fraction.len();
    let (factor, exponent) = match suffix {
        Suffix::Decimal(power) | Suffix::Exponent(power) if digits <= SMALL_DIGITS => (1, power),
        Suffix::Binary(power)
            if fraction.is_empty() && digits + (power * 3 / 10) as usize <= SMALL_BINARY_DIGITS =>
        {
            (1_i64.checked_shl(power)?, 0)
        }
        _ => return None,
    };
    let scale = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    if scale < NANO {
        return None;
    }
    let value = format!("{whole}{fraction}").parse::<i64>().ok()?.checked_mul(factor)?;
    Some(Amount::Small { value, scale })
}

/// The amount as a decimal in whole billionths, rounded up; binary ones end at the largest that has 64 bits.
fn large(Spelling { whole, fraction, suffix, .. }: Spelling<'_>) -> Amount {
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let kept = &significant[..significant.len().min(MOST_DIGITS as usize)];
    let dropped = &significant[kept.len()..];
    let inexact = dropped.bytes().any(|digit| digit != b'0');
    let places = |text: &str| i64::try_from(text.len()).unwrap_or(i64::from(i32::MAX));
    let number =
        Decimal { mantissa: kept.parse().unwrap_or_default(), exponent: places(dropped) - places(fraction) };
    let decimal = match suffix {
        Suffix::Decimal(power) | Suffix::Exponent(power) => {
            let exponent = number.exponent + i64::from(power);
            Decimal { exponent, ..number }.rounded_up(inexact).towards(NANO)
        }
        Suffix::Binary(power) => binary(number, power, inexact),
    };
    Amount::Decimal(decimal)
}

fn binary(number: Decimal, power: u32, inexact: bool) -> Decimal {
    if i64::from(number.digits()) + number.exponent > MOST_BINARY_DIGITS {
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
}
