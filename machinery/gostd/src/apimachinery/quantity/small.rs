//! 64-bit integers with a power of ten, like upstream's `int64Amount`.

use super::decimal::Decimal;

/// Number `value * 10^scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int64Amount {
    pub(super) value: i64,
    pub(super) scale: i64,
}

impl Int64Amount {
    pub(super) fn decimal(self) -> Decimal {
        let digits = self.value.unsigned_abs().to_string().into_bytes();
        Decimal::new(self.value < 0, digits, self.scale, self.scale)
    }

    /// Returns the number in units of `10^scale`, rounded away from zero; `None` on overflow.
    pub(super) fn at_scale(self, scale: i64) -> Option<i64> {
        if self.scale < scale {
            return Some(self.rounded_up(scale).0.value);
        }
        self.value.checked_mul(power(self.value, self.scale - scale)?)
    }

    /// Returns the number in units of `10^scale` like `AsScaledInt64` without a check for overflow: powers of ten that upstream
    /// multiplies in one step wrap around, others result in 0.
    pub(super) fn scaled_value(self, scale: i64) -> i64 {
        let wrapped = || match self.scale - scale {
            places @ (1 | 2 | 3 | 6 | 9) => self.value.wrapping_mul(power(self.value, places).unwrap_or(0)),
            _ => 0,
        };
        self.at_scale(scale).unwrap_or_else(wrapped)
    }

    /// Returns the value if the scale is not negative: `1.0` is not an integer here.
    pub(super) fn integer(self) -> Option<i64> {
        match self.scale {
            0 => Some(self.value),
            1.. => self.at_scale(0),
            _ => None,
        }
    }

    /// Rounds away from zero to units of at least `10^scale`. Returns true if the result is exact.
    pub(super) fn rounded_up(self, scale: i64) -> (Self, bool) {
        if self.scale >= scale {
            return (self, true);
        }
        let unit = u32::try_from(scale - self.scale).ok().and_then(|places| 10_i64.checked_pow(places));
        let (quotient, rest) = unit.map_or((0, self.value), |unit| (self.value / unit, self.value % unit));
        (Self { value: quotient + rest.signum(), scale }, rest == 0)
    }

    /// Returns the sum, or `None` on overflow of 64 bits.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        if self.value == 0 || other.value == 0 {
            return Some(if other.value == 0 { self } else { other });
        }
        let scale = self.scale.min(other.scale);
        Some(Self { value: self.at_scale(scale)?.checked_add(other.at_scale(scale)?)?, scale })
    }
}

/// Returns the factor between two scales.
fn power(value: i64, scale: i64) -> Option<i64> {
    if value == 0 { Some(1) } else { 10_i64.checked_pow(u32::try_from(scale).ok()?) }
}
