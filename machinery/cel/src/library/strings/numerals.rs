//! Floating-point numbers in `format`: plain, and `%f` and `%e` in English notation with commas and superscript exponents.

/// Default number of digits after the decimal point.
const PRECISION: usize = 6;
/// Maximum digits after the decimal point of a number.
const MAX_FRACTION_DIGITS: usize = 1074;
/// Maximum digits before the decimal point of a number.
const MAX_INTEGER_DIGITS: usize = 309;
/// Result of a clause whose precision exceeds Go's limit.
const NO_CLAUSE: &str = "%!(NOVERB)";
/// Limit of upstream's number parser: a number is too large if it exceeds this and has further digits.
const MAX_PARSED_NUMBER: u64 = 1_000_000;

/// Formats a number with six digits after the point, as in lists and maps.
pub(super) fn plain(number: f64) -> String {
    not_finite(number).map_or_else(|| format!("{number:.PRECISION$}"), str::to_owned)
}

fn not_finite(number: f64) -> Option<&'static str> {
    match number {
        n if n.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

fn not_finite_sign(number: f64) -> Option<&'static str> {
    match number {
        n if n.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// Replaces negative zero with zero.
fn unsigned_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

fn too_large(precision: u64) -> bool {
    precision / 10 > MAX_PARSED_NUMBER
}

/// Returns the maximum number of digits of a number formatted by [`fixed`].
pub(super) fn digits(number: f64, precision: Option<u64>) -> usize {
    let fraction = match precision {
        None => PRECISION,
        Some(0) => 0,
        Some(digits) => match usize::try_from(digits & 0xff) {
            Ok(0) | Err(_) => MAX_FRACTION_DIGITS,
            Ok(digits) => digits,
        },
    };
    fraction + if number.abs() < 1e18 { 18 } else { MAX_INTEGER_DIGITS }
}

/// Formats a number for `%f`: `1,234.500000`. Upstream's printer uses the last eight bits of the precision; if they are zero, it
/// prints all digits.
pub(super) fn fixed(number: f64, precision: Option<u64>) -> String {
    if precision.is_some_and(too_large) {
        return NO_CLAUSE.to_owned();
    }
    if let Some(sign) = not_finite_sign(number) {
        return sign.to_owned();
    }
    let number = unsigned_zero(number);
    let text = match precision {
        None => format!("{number:.PRECISION$}"),
        Some(0) => format!("{number:.0}"),
        Some(digits) => match usize::try_from(digits & 0xff) {
            Ok(0) | Err(_) => all_digits(number),
            Ok(digits) => format!("{number:.digits$}"),
        },
    };
    with_commas(&text)
}

/// Returns all digits of a number.
fn all_digits(number: f64) -> String {
    let text = format!("{number:.MAX_FRACTION_DIGITS$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn with_commas(text: &str) -> String {
    let (sign, unsigned) =
        if let Some(unsigned) = text.strip_prefix('-') { ("-", unsigned) } else { ("", text) };
    let (integer, fraction) = unsigned.split_at(unsigned.find('.').unwrap_or(unsigned.len()));
    let mut grouped = String::with_capacity(text.len() + integer.len() / 3);
    grouped.push_str(sign);
    for (index, digit) in integer.chars().enumerate() {
        if index > 0 && (integer.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Formats a number for `%e`: `1.234500×10⁻⁰⁵`, always with six digits. Upstream's printer treats the precision as a width, of
/// which it uses sixteen bits; a leading zero has no effect.
pub(super) fn scientific(number: f64, width: Option<u64>) -> String {
    if width.is_some_and(too_large) {
        return NO_CLAUSE.to_owned();
    }
    let text = not_finite_sign(number)
        .map_or_else(|| with_superscript_exponent(unsigned_zero(number)), str::to_owned);
    // Without a precision, the width is that of `%6e`.
    let width = usize::try_from(width.unwrap_or(PRECISION as u64) & 0xffff).unwrap_or(PRECISION);
    let missing = width.saturating_sub(text.chars().count());
    " ".repeat(missing) + &text
}

fn with_superscript_exponent(number: f64) -> String {
    const SUPERSCRIPT_DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{number:.PRECISION$e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { "⁻" } else { "" };
    let exponent = format!("{:02}", exponent.abs());
    let raised =
        exponent.bytes().map(|digit| SUPERSCRIPT_DIGITS[usize::from(digit.saturating_sub(b'0')) % 10]);
    format!("{digits}×10{sign}{}", raised.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_numbers_have_commas_and_their_digits() {
        let cases = [
            (1_234_567.891, None, "1,234,567.891000"),
            (-1_234_567.891, None, "-1,234,567.891000"),
            (2.5, Some(0), "2"),
            (-0.4, Some(0), "-0"),
            (-0.0, None, "0.000000"),
            (999.995, Some(2), "1,000.00"),
            (0.25, Some(1), "0.2"),
            (1000.5, Some(256), "1,000.5"),
            (0.5, Some(258), "0.50"),
            (2.0, Some(512), "2"),
            (1.0, Some(10_000_010), "%!(NOVERB)"),
            (f64::NEG_INFINITY, None, "-∞"),
            (f64::NAN, Some(3), "NaN"),
        ];
        for (number, precision, want) in cases {
            assert_eq!(fixed(number, precision), want, "{number} {precision:?}");
        }
        assert_eq!(fixed(1.0, Some(10_000_009)).len(), 2 + 137);
    }

    #[test]
    fn scientific_numbers_have_raised_exponents_and_a_width() {
        let cases = [
            (1_234_567.891, None, "1.234568×10⁰⁶"),
            (-1.5e-7, None, "-1.500000×10⁻⁰⁷"),
            (1e100, None, "1.000000×10¹⁰⁰"),
            (-0.0, None, "0.000000×10⁰⁰"),
            (1.0, Some(3), "1.000000×10⁰⁰"),
            (0.1, Some(25), "           1.000000×10⁻⁰¹"),
            (1.0, Some(65_560), "           1.000000×10⁰⁰"),
            (f64::INFINITY, None, "     ∞"),
            (f64::INFINITY, Some(0), "∞"),
            (f64::NAN, Some(5), "  NaN"),
        ];
        for (number, width, want) in cases {
            assert_eq!(scientific(number, width), want, "{number} {width:?}");
        }
    }
}
