//! Parser of quantities, like `resource.ParseQuantity`.

use std::cmp::Ordering;
use std::str::FromStr;

use super::decimal::Decimal;
use super::print::{BINARY, DECIMAL};
use super::small::Int64Amount;
use super::{Amount, Format, NANO, Quantity, QuantityError};

/// Maximum digits of a number that is stored as a 64-bit integer.
const MAX_SMALL_DIGITS: usize = 18;
/// Maximum digits with a binary suffix, including the digits of the suffix's factor.
const MAX_SMALL_BINARY_DIGITS: usize = 14;

/// Parts of a quantity's text.
#[derive(Clone, Copy, Debug)]
struct QuantityText<'t> {
    negative: bool,
    /// Digits before the point, without leading zeros; `0` if there are none.
    whole: &'t str,
    /// Digits after the point; may be empty.
    fraction: &'t str,
    /// True if the number has at least one digit.
    has_digits: bool,
    suffix: Suffix,
}

/// Factor of a suffix.
#[derive(Clone, Copy, Debug)]
enum Suffix {
    /// Power of ten: a letter (`m`, `k`), or no suffix.
    Decimal(i32),
    /// Power of ten, written as an exponent (`e3`).
    Exponent(i32),
    /// Power of two: 10 for `Ki`.
    Binary(u32),
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let spelling = QuantityText::read(text)?;
        let format = spelling.suffix.format();
        if let Some(small) = spelling.small() {
            let text = (text == "0" || spelling.is_canonical(small)).then(|| text.into());
            let value = if spelling.negative { -small.value } else { small.value };
            return Ok(Self { amount: Amount::Small(Int64Amount { value, ..small }), format, text });
        }
        if !spelling.has_digits {
            return Err(QuantityError::Numeric);
        }
        let decimal = spelling.decimal();
        let below_one = decimal.sign() > 0
            && decimal.compare(&Int64Amount { value: 1, scale: 0 }.decimal()) == Ordering::Less;
        // A binary suffix would round the number when it is printed.
        let format = if below_one && format == Format::Binary { Format::Decimal } else { format };
        let decimal = if spelling.negative { decimal.negated() } else { decimal };
        Ok(Self { amount: Amount::Decimal(Box::new(decimal)), format, text: None })
    }
}

impl<'t> QuantityText<'t> {
    fn read(text: &'t str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let (whole, rest) = digits(text.strip_prefix(['+', '-']).unwrap_or(text));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        check_suffix(suffix)?;
        let suffix = Suffix::read(suffix).ok_or(QuantityError::Suffix)?;
        let has_digits = !(whole.is_empty() && fraction.is_empty());
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        Ok(Self { negative: text.starts_with('-'), whole, fraction, has_digits, suffix })
    }

    /// Returns the absolute value as a 64-bit integer with a power of ten. Upstream decides by the number of digits if it fits.
    fn small(&self) -> Option<Int64Amount> {
        let Self { whole, fraction, suffix, .. } = *self;
        let digits = whole.len() + fraction.len();
        let (factor, exponent) = match suffix {
            Suffix::Decimal(power) | Suffix::Exponent(power) if digits <= MAX_SMALL_DIGITS => (1, power),
            Suffix::Binary(power)
                if fraction.is_empty() && digits + (power * 3 / 10) as usize <= MAX_SMALL_BINARY_DIGITS =>
            {
                (1_i64 << power, 0)
            }
            _ => return None,
        };
        let scale = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        if scale < NANO {
            return None;
        }
        let value = format!("{whole}{fraction}").parse::<i64>().ok()?.checked_mul(factor)?;
        Some(Int64Amount { value, scale })
    }

    /// True if Go considers the text canonical, which depends only on the digits.
    fn is_canonical(&self, small: Int64Amount) -> bool {
        match self.suffix {
            Suffix::Binary(power) => (small.value >> power) & 7 != 0,
            Suffix::Decimal(_) | Suffix::Exponent(_) => {
                let ends_in_zeros = if self.fraction.len() >= 3 {
                    self.fraction.ends_with("000")
                } else {
                    format!("{}{}", self.whole, self.fraction).ends_with("000")
                };
                small.scale % 3 == 0 && !ends_in_zeros && !self.whole.starts_with('0')
            }
        }
    }

    /// Returns the absolute value, rounded up to billionths; with a binary suffix, at most the maximum 64-bit integer.
    fn decimal(&self) -> Decimal {
        let digits = [self.whole.as_bytes(), self.fraction.as_bytes()].concat();
        let places = i64::try_from(self.fraction.len()).unwrap_or(i64::MAX);
        let number = |power: i32| {
            let exponent = i64::from(power) - places;
            let number = Decimal::new(false, digits.clone(), exponent, exponent);
            if number.sign() == 0 { number } else { number.rounded_up(NANO).0 }
        };
        match self.suffix {
            Suffix::Decimal(power) | Suffix::Exponent(power) => number(power),
            Suffix::Binary(power) => {
                let exact = Decimal::new(false, digits, -places, -places).shifted(power);
                let rounded = if exact.sign() == 0 { exact } else { exact.rounded_up(NANO).0 };
                if rounded.compare(&Decimal::max_int64()) == Ordering::Greater {
                    Decimal::max_int64()
                } else {
                    rounded
                }
            }
        }
    }
}

impl Suffix {
    fn read(text: &str) -> Option<Self> {
        if let Some((_, power)) = DECIMAL.iter().find(|(candidate, _)| *candidate == text) {
            return Some(Self::Decimal(*power));
        }
        if let Some(power) = BINARY.iter().position(|candidate| *candidate == text) {
            return Some(Self::Binary(10 * u32::try_from(power).ok()?));
        }
        let exponent: i64 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "upstream also truncates to 32 bits")]
        Some(Self::Exponent(exponent as i32))
    }

    fn format(self) -> Format {
        match self {
            Self::Decimal(_) => Format::Decimal,
            Self::Exponent(_) => Format::Exponent,
            Self::Binary(_) => Format::Binary,
        }
    }
}

/// Splits a text after its leading digits.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Checks that a suffix consists of letters, an optional sign, and digits.
fn check_suffix(suffix: &str) -> Result<(), QuantityError> {
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits(exponent).1.is_empty() { Ok(()) } else { Err(QuantityError::Format) }
}
