//! Floating-point numbers in `format`: plain ones, and `%f` and `%e` in the English manner with commas and raised
//! exponents.

/// Digits behind the point unless a clause says otherwise.
const PRECISION: usize = 6;
/// Digits behind the point that a number has at most.
const MOST_DIGITS: usize = 1074;
/// Digits before the point that a number has at most.
const MOST_WHOLE_DIGITS: usize = 309;
/// Result of a clause whose precision exceeds Go's limit.
const NO_CLAUSE: &str = "%!(NOVERB)";
/// A number is too large for upstream's printer when it has still more digits behind one above this.
const LARGEST: u64 = 1_000_000;

/// Six digits behind the point, as CEL writes numbers inside of lists and maps.
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

/// Negative zero is zero.
fn unsigned_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

fn too_large(precision: u64) -> bool {
    precision / 10 > LARGEST
}

/// Most digits of a number as [`fixed`] writes it.
pub(super) fn digits(number: f64, precision: Option<u64>) -> usize {
    let fraction = match precision {
        None => PRECISION,
        Some(0) => 0,
        Some(digits) => match usize::try_from(digits & 0xff) {
            Ok(0) | Err(_) => MOST_DIGITS,
            Ok(digits) => digits,
        },
    };
    fraction + if number.abs() < 1e18 { 18 } else { MOST_WHOLE_DIGITS }
}

/// `%f`: `1,234.500000`. Upstream's printer keeps the last eight bits of the precision; none are all digits.
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

/// Every digit of a number, which are not more than these.
fn all_digits(number: f64) -> String {
    let text = format!("{number:.MOST_DIGITS$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn with_commas(text: &str) -> String {
    let (sign, unsigned) =
        if let Some(unsigned) = text.strip_prefix('-') { ("-", unsigned) } else { ("", text) };
    let (whole, fraction) = unsigned.split_at(unsigned.find('.').unwrap_or(unsigned.len()));
    let mut grouped = String::with_capacity(text.len() + whole.len() / 3);
    grouped.push_str(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// `%e`: `1.234500×10⁻⁰⁵`, always with six digits. What looks like a precision is a width to upstream's printer, of
/// which it keeps sixteen bits; a leading zero asks for nothing.
pub(super) fn scientific(number: f64, width: Option<u64>) -> String {
    if width.is_some_and(too_large) {
        return NO_CLAUSE.to_owned();
    }
    let text = not_finite_sign(number).map_or_else(|| raised(unsigned_zero(number)), str::to_owned);
    // `%6e` it is without any.
    let width = usize::try_from(width.unwrap_or(PRECISION as u64) & 0xffff).unwrap_or(PRECISION);
    let missing = width.saturating_sub(text.chars().count());
    " ".repeat(missing) + &text
}

fn raised(number: f64) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{number:.PRECISION$e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { "⁻" } else { "" };
    let exponent = format!("{:02}", exponent.abs());
    let raised = exponent.bytes().map(|digit| RAISED[usize::from(digit.saturating_sub(b'0')) % 10]);
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
