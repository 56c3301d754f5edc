//! How quantities are spelled: a sign, digits, a fraction, a suffix.

use super::QuantityError;

/// Suffixes of decimal quantities, and their powers of ten.
pub(super) const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Suffixes of binary quantities, by their powers of 1024.
pub(super) const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The parts of a text that is a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling<'t> {
    /// Whether it begins with `-`.
    pub negative: bool,
    /// Digits before the point, maybe none.
    pub whole: &'t str,
    /// Digits behind it, maybe none.
    pub fraction: &'t str,
    /// What they are multiplied with.
    pub suffix: Suffix,
}

/// What a suffix multiplies with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// 10 to a power, by a letter (`m`, `k`) or none.
    Decimal(i32),
    /// 10 to a power, as an exponent (`e3`).
    Exponent(i32),
    /// 2 to a power (`Ki` is 10).
    Binary(u32),
}

impl<'t> Spelling<'t> {
    /// Takes a text apart.
    ///
    /// # Errors
    /// [`QuantityError`]
    pub fn read(text: &'t str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let (whole, rest) = digits(text.strip_prefix(['+', '-']).unwrap_or(text));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        check(suffix)?;
        let suffix = Suffix::read(suffix).ok_or(QuantityError::Suffix)?;
        Ok(Self { negative: text.starts_with('-'), whole, fraction, suffix })
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
}

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Letters, then maybe a sign, then digits: what has this form may still be no suffix.
fn check(suffix: &str) -> Result<(), QuantityError> {
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits(exponent).1.is_empty() { Ok(()) } else { Err(QuantityError::Format) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_taken_apart_or_told_why_not() {
        let of = |text| Spelling::read(text).map(|s| (s.negative, s.whole, s.fraction, s.suffix));
        for (text, want) in [
            ("-1.50Ki", (true, "1", "50", Suffix::Binary(10))),
            ("+.5m", (false, "", "5", Suffix::Decimal(-3))),
            ("7E-2", (false, "7", "", Suffix::Exponent(-2))),
            ("1e4294967296", (false, "1", "", Suffix::Exponent(0))),
            ("-", (true, "", "", Suffix::Decimal(0))),
        ] {
            assert_eq!(of(text), Ok(want), "{text}");
        }
        for text in ["", "abc", "1x", " 1", "1..2", "1m5x", "1e1e", "١"] {
            assert_eq!(of(text), Err(QuantityError::Format), "{text}");
        }
        for text in ["1i", "+-1", "--1", "1E+", "1ee", "1k5", "1e99999999999999999999"] {
            assert_eq!(of(text), Err(QuantityError::Suffix), "{text}");
        }
    }
}
