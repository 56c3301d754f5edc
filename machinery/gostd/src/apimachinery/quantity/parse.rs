//! Quantities from their texts, as `resource.ParseQuantity` reads them.

use std::cmp::Ordering;
use std::str::FromStr;

use super::decimal::Decimal;
use super::print::{BINARY, DECIMAL};
use super::small::Small;
use super::{Amount, Format, NANO, Quantity, QuantityError};

/// The most digits of a number that is kept in 64 bits.
const MAX_SMALL_DIGITS: usize = 18;
/// The most with a binary suffix, whose own digits count, too.
const MAX_SMALL_BINARY_DIGITS: usize = 14;

/// The parts of a text that is a quantity.
#[derive(Clone, Copy, Debug)]
struct Spelling<'t> {
    negative: bool,
    /// Digits before the point, without zeros at their start: `0` where there are none.
    whole: &'t str,
    /// Digits behind it, maybe none.
    fraction: &'t str,
    /// True if there is a digit.
    has_digits: bool,
    suffix: Suffix,
}

/// Returns the factor of a suffix.
#[derive(Clone, Copy, Debug)]
enum Suffix {
    /// 10 to a power, by a letter (`m`, `k`) or none.
    Decimal(i32),
    /// 10 to a power, as an exponent (`e3`).
    Exponent(i32),
    /// 2 to a power (`Ki` is 10).
    Binary(u32),
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let spelling = Spelling::read(text)?;
        let format = spelling.suffix.format();
        if let Some(small) = spelling.small() {
            let text = (text == "0" || spelling.is_canonical(small)).then(|| text.into());
            let value = if spelling.negative { -small.value } else { small.value };
            return Ok(Self { amount: Amount::Small(Small { value, ..small }), format, text });
        }
        if !spelling.has_digits {
            return Err(QuantityError::Numeric);
        }
        let decimal = spelling.decimal();
        let below_one =
            decimal.sign() > 0 && decimal.compare(&Small { value: 1, scale: 0 }.decimal()) == Ordering::Less;
        // Printed with a binary suffix it would be rounded.
        let format = if below_one && format == Format::Binary { Format::Decimal } else { format };
        let decimal = if spelling.negative { decimal.negated() } else { decimal };
        Ok(Self { amount: Amount::Decimal(Box::new(decimal)), format, text: None })
    }
}

impl<'t> Spelling<'t> {
    fn read(text: &'t str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let (whole, rest) = digits(text.strip_prefix(['+', '-']).unwrap_or(text));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        check(suffix)?;
        let suffix = Suffix::read(suffix).ok_or(QuantityError::Suffix)?;
        let has_digits = !(whole.is_empty() && fraction.is_empty());
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        Ok(Self { negative: text.starts_with('-'), whole, fraction, has_digits, suffix })
    }

    /// The number as 64 bits, without its sign, by upstream's rule of thumb: enough room by the number of digits.
    fn small(&self) -> Option<Small> {
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
        Some(Small { value, scale })
    }

    /// True if Go considers the text canonical. Only the digits matter.
    fn is_canonical(&self, small: Small) -> bool {
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

    /// The number without its sign, in whole billionths, rounded up; binary ones end at the largest of 64 bits.
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
                if rounded.compare(&Decimal::largest()) == Ordering::Greater {
                    Decimal::largest()
                } else {
                    rounded
                }
            }
        }
    }
}

impl Suffix {
    fn read(text: &str) -> Option<Self> {
        if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == text) {
            return Some(Self::Decimal(*power));
        }
        if let Some(power) = BINARY.iter().position(|known| *known == text) {
            return Some(Self::Binary(10 * u32::try_from(power).ok()?));
        }
        let exponent: i64 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "upstream keeps 32 bits of it")]
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

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// True for letters, an optional sign and digits, the form of a suffix.
fn check(suffix: &str) -> Result<(), QuantityError> {
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits(exponent).1.is_empty() { Ok(()) } else { Err(QuantityError::Format) }
}
