//! Printer of quantities, like `Quantity.CanonicalizeBytes`.

use std::cmp::Ordering;
use std::fmt;

use super::decimal::Decimal;
use super::small::Int64Amount;
use super::{Format, Quantity};

/// Suffixes of decimal quantities, and their powers of ten.
pub(super) const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Suffixes of binary quantities, by their powers of 1024.
pub(super) const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Maximum digits of a number that is divided by 1024; longer ones, which only sums of exponents reach, are printed as exponents.
const MAX_BINARY_DIGITS: usize = 256;

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.is_negative() {
            f.write_str("-")?;
        }
        let decimal = self.decimal();
        match self.format {
            Format::Binary if !is_small(&decimal) && decimal.rounded_up(0).1 => write_binary(&decimal, f),
            Format::Exponent => write_exponent(&decimal, f),
            Format::Binary | Format::Decimal => {
                let (number, exponent) = thousands(&decimal);
                // Upstream prints no suffix if none exists: `1000E` becomes `1`.
                let suffix = DECIMAL.iter().find(|(_, power)| i64::from(*power) == exponent);
                write!(f, "{number}{}", suffix.map_or("", |(suffix, _)| suffix))
            }
        }
    }
}

/// True if the number is between -1024 and 1024, where a binary suffix would round it.
fn is_small(decimal: &Decimal) -> bool {
    let bound = |value| Int64Amount { value, scale: 0 }.decimal();
    decimal.compare(&bound(1024)) == Ordering::Less && decimal.compare(&bound(-1024)) == Ordering::Greater
}

fn write_exponent(decimal: &Decimal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match thousands(decimal) {
        (number, 0) => f.write_str(&number),
        (number, exponent) => write!(f, "{number}e{exponent}"),
    }
}

/// Returns the digits and the largest power of a thousand that leaves no fraction.
fn thousands(decimal: &Decimal) -> (String, i64) {
    let (digits, exponent) = decimal.parts();
    let zeros = exponent.rem_euclid(3);
    let zeros_text = &"00"[..usize::try_from(zeros).unwrap_or(0)];
    (format!("{}{zeros_text}", String::from_utf8_lossy(digits)), exponent - zeros)
}

/// Writes an integer with the suffix of the largest power of 1024 that leaves no fraction.
fn write_binary(decimal: &Decimal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (digits, zeros) = decimal.parts();
    let Some(length) = usize::try_from(zeros).ok().and_then(|zeros| digits.len().checked_add(zeros)) else {
        return write_exponent(decimal, f);
    };
    if length > MAX_BINARY_DIGITS {
        return write_exponent(decimal, f);
    }
    let mut number = digits.to_vec();
    number.resize(length, b'0');
    let mut power = 0;
    while let Some(quotient) = divide_by_1024(&number) {
        (number, power) = (quotient, power + 1);
    }
    let number = String::from_utf8_lossy(&number);
    write!(f, "{}{}", number.trim_start_matches('0'), BINARY.get(power).unwrap_or(&""))
}

/// Divides digits by 1024. Returns `None` if there is a remainder.
fn divide_by_1024(digits: &[u8]) -> Option<Vec<u8>> {
    let mut rest = 0_u32;
    let quotient = digits
        .iter()
        .map(|digit| {
            rest = rest * 10 + u32::from(digit - b'0');
            let digit = u8::try_from(rest / 1024).unwrap_or(0);
            rest %= 1024;
            b'0' + digit
        })
        .collect();
    (rest == 0).then_some(quotient)
}
