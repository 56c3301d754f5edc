//! Decimals of any number of digits, like upstream's `inf.Dec`. Each operation takes time linear in the number of digits.

use std::cmp::Ordering;

/// Maximum digits of a sum; lower digits are dropped. Only texts with exponents of four digits can exceed it.
const MAX_SUM_DIGITS: i64 = 4096;

/// Signed number: `digits * 10^exponent`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    negative: bool,
    /// Decimal digits without leading and trailing zeros; empty for zero.
    digits: Vec<u8>,
    exponent: i64,
    /// Power of ten of the unit that upstream uses for this number, at most `exponent`. Determines which conversions overflow.
    unit: i64,
}

impl Decimal {
    pub(super) fn new(negative: bool, mut digits: Vec<u8>, exponent: i64, unit: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        let end = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        let exponent = exponent + length(&digits[end..]);
        digits.truncate(end);
        Self { negative: negative && !digits.is_empty(), digits, exponent, unit }
    }

    /// Returns the maximum 64-bit integer.
    pub(super) fn max_int64() -> Self {
        Self::new(false, i64::MAX.to_string().into_bytes(), 0, 0)
    }

    /// Returns the number with another unit, `10^unit`, of which it must be a multiple.
    pub(super) fn with_unit(self, unit: i64) -> Self {
        Self { unit, ..self }
    }

    /// Returns the maximum size of a sum with this number, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.digits.len() + count(MAX_SUM_DIGITS)
    }

    pub(super) fn negated(self) -> Self {
        Self { negative: !self.negative && !self.digits.is_empty(), ..self }
    }

    pub(super) fn sign(&self) -> i64 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Returns the power of ten of the first digit, plus one.
    fn magnitude(&self) -> i64 {
        length(&self.digits) + self.exponent
    }

    /// Returns the digits, and the power of ten by which they are multiplied.
    pub(super) fn parts(&self) -> (&[u8], i64) {
        (&self.digits, self.exponent)
    }

    /// Rounds away from zero to units of `10^unit`. Returns true if the result is exact.
    pub(super) fn rounded_up(&self, unit: i64) -> (Self, bool) {
        if self.digits.is_empty() || self.exponent >= unit {
            return (self.clone().with_unit(unit), true);
        }
        let dropped = usize::try_from(unit - self.exponent).unwrap_or(usize::MAX);
        let kept_digits = &self.digits[..self.digits.len().saturating_sub(dropped)];
        (Self::new(self.negative, increment(kept_digits), unit, unit), false)
    }

    /// Returns the product with `2^power`; `power` is at most 64.
    pub(super) fn shifted(&self, power: u32) -> Self {
        let (factor, mut carry) = (1_u128 << power, 0_u128);
        let mut product = Vec::with_capacity(self.digits.len() + 20);
        for digit in self.digits.iter().rev() {
            carry += u128::from(digit - b'0') * factor;
            product.push(to_digit(carry % 10));
            carry /= 10;
        }
        while carry > 0 {
            product.push(to_digit(carry % 10));
            carry /= 10;
        }
        product.reverse();
        Self::new(self.negative, product, self.exponent, self.unit)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let unit = self.unit.min(other.unit);
        if self.digits.is_empty() || other.digits.is_empty() {
            let some = if self.digits.is_empty() { other } else { self };
            return some.clone().with_unit(unit);
        }
        let high = self.magnitude().max(other.magnitude());
        let low = self.exponent.min(other.exponent).max(high - MAX_SUM_DIGITS);
        let (one, two) = (self.aligned_digits(high, low), other.aligned_digits(high, low));
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, sum(&one, &two))
        } else if one >= two {
            (self.negative, difference(&one, &two))
        } else {
            (other.negative, difference(&two, &one))
        };
        Self::new(negative, digits, low, unit)
    }

    /// Returns the digits from `10^high` (exclusive) down to `10^low`.
    fn aligned_digits(&self, high: i64, low: i64) -> Vec<u8> {
        let length = count(high - low);
        let mut digits = vec![b'0'; count(high - self.magnitude()).min(length)];
        digits.extend(&self.digits[..self.digits.len().min(length - digits.len())]);
        digits.resize(length, b'0');
        digits
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.sign().cmp(&other.sign()).then_with(|| {
            let order = self.magnitude().cmp(&other.magnitude()).then_with(|| self.digits.cmp(&other.digits));
            match self.sign() {
                0 => Ordering::Equal,
                1 => order,
                _ => order.reverse(),
            }
        })
    }

    /// Returns an approximate float, computed like upstream: the number of units times the value of a unit.
    pub(super) fn approximate(&self) -> f64 {
        let digits = String::from_utf8_lossy(&self.digits);
        let units = format!("0{digits}e{}", self.exponent.saturating_sub(self.unit)).parse().unwrap_or(0.0);
        let units: f64 = if self.negative { -units } else { units };
        if self.unit == 0 { units } else { units * power_of_ten(self.unit) }
    }

    /// Returns the number in units of `10^scale` like upstream's `scaledValue`: rounded up, and wrapped around on overflow.
    pub(super) fn scaled_value(&self, scale: i64) -> i64 {
        let units = low_bits(&self.digits, self.exponent - self.unit, self.negative);
        let places = scale - self.unit;
        if places <= 0 {
            return if places == 0 { units } else { units.wrapping_mul(overflowing_power(-places)) };
        }
        let small = self.negative || self.magnitude() - self.unit < 19 || self.is_less_than_max();
        if let Some(unit) = u32::try_from(places).ok().and_then(|places| 10_i64.checked_pow(places))
            && small
        {
            return units / unit + i64::from(units % unit != 0);
        }
        self.ceiling(scale)
    }

    /// True if the number of units is less than `i64::MAX`.
    fn is_less_than_max(&self) -> bool {
        let units = Self { exponent: self.exponent - self.unit, unit: 0, ..self.clone() };
        units.compare(&Self::max_int64()) == Ordering::Less
    }

    /// Returns the number in units of `10^scale`, rounded up to an integer, of which only the lower 64 bits are returned.
    fn ceiling(&self, scale: i64) -> i64 {
        if self.exponent >= scale {
            return low_bits(&self.digits, self.exponent - scale, self.negative);
        }
        let dropped = usize::try_from(scale - self.exponent).unwrap_or(usize::MAX);
        let kept_digits = &self.digits[..self.digits.len().saturating_sub(dropped)];
        let integer = low_bits(kept_digits, 0, self.negative);
        if self.negative { integer } else { integer.wrapping_add(1) }
    }
}

/// Converts a number of digits; negative numbers become 0.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

fn to_digit(number: u128) -> u8 {
    b'0' + u8::try_from(number).unwrap_or(0)
}

/// Returns the digits of the number plus one.
fn increment(digits: &[u8]) -> Vec<u8> {
    let one = [vec![b'0'; digits.len()], vec![b'1']].concat();
    sum(&[b"0", digits].concat(), &one)
}

/// Returns the sum of two numbers of the same length, with one more digit.
fn sum(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut digits: Vec<u8> = one
        .iter()
        .zip(two)
        .rev()
        .map(|(a, b)| {
            let digit = a - b'0' + (b - b'0') + carry;
            carry = digit / 10;
            b'0' + digit % 10
        })
        .collect();
    digits.push(b'0' + carry);
    digits.reverse();
    digits
}

/// Subtracts digits from digits of the same length that are not smaller.
fn difference(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut borrowed = 0;
    let mut digits: Vec<u8> = one
        .iter()
        .zip(two)
        .rev()
        .map(|(a, b)| {
            let less = b - b'0' + borrowed;
            let digit = a - b'0';
            borrowed = u8::from(digit < less);
            b'0' + digit + 10 * borrowed - less
        })
        .collect();
    digits.reverse();
    digits
}

/// Returns the lower 64 bits of the number with these digits followed by zeros.
#[expect(clippy::cast_possible_wrap, reason = "wraps around as in Go")]
fn low_bits(digits: &[u8], zeros: i64, negative: bool) -> i64 {
    let number = digits
        .iter()
        .fold(0_u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    let factor = u32::try_from(zeros.max(0)).map_or(0, |zeros| 10_u64.wrapping_pow(zeros));
    let number = number.wrapping_mul(factor) as i64;
    if negative { number.wrapping_neg() } else { number }
}

/// Returns a power of ten as Go converts it from a float: the minimum on overflow.
fn overflowing_power(places: i64) -> i64 {
    u32::try_from(places).ok().and_then(|places| 10_i64.checked_pow(places)).unwrap_or(i64::MIN)
}

/// Returns a power of ten like Go's `math.Pow10`, which multiplies two table values: not always the nearest float.
pub(super) fn power_of_ten(exponent: i64) -> f64 {
    let exact = |exponent: i64| format!("1e{exponent}").parse::<f64>().unwrap_or_default();
    match exponent {
        ..-323 => 0.0,
        -323..0 => exact(-(-exponent / 32 * 32)) / exact(-exponent % 32),
        0..=308 => exact(exponent / 32 * 32) * exact(exponent % 32),
        _ => f64::INFINITY,
    }
}
