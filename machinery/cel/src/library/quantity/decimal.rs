//! Decimals of 36 digits, and of any exponent: none makes work.

use std::cmp::Ordering;

/// The most digits of a decimal; what is behind them is dropped.
pub(super) const MOST_DIGITS: u32 = 36;
/// The finest that is kept: billionths.
pub(super) const NANO: i64 = -9;

/// `mantissa * 10^exponent`; the mantissa has at most 36 digits.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    pub(super) mantissa: i128,
    pub(super) exponent: i64,
}

impl Decimal {
    /// The largest that has a binary suffix.
    pub(super) const LARGEST_BINARY: Self = Self { mantissa: i64::MAX as i128, exponent: 0 };

    pub(super) fn digits(self) -> u32 {
        self.mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1)
    }

    /// Without more digits than are kept.
    pub(super) fn bounded(self) -> Self {
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
    pub(super) fn towards(self, exponent: i64) -> Self {
        let mut at = self;
        while at.exponent > exponent && at.digits() < MOST_DIGITS && at.mantissa != 0 {
            at = Self { mantissa: at.mantissa * 10, exponent: at.exponent - 1 };
        }
        at
    }

    /// In whole billionths, away from zero; `inexact`: something was dropped behind its digits.
    pub(super) fn rounded_up(self, inexact: bool) -> Self {
        if self.mantissa == 0 || self.exponent >= NANO {
            return self;
        }
        let places = u32::try_from(NANO - self.exponent).unwrap_or(u32::MAX);
        let unit = 10_i128.checked_pow(places).filter(|_| places <= MOST_DIGITS);
        let (whole, rest) = unit.map_or((0, 1), |unit| (self.mantissa / unit, self.mantissa % unit));
        let up = if rest != 0 || inexact { self.mantissa.signum() } else { 0 };
        Self { mantissa: whole + up, exponent: NANO }
    }

    pub(super) fn plus(self, other: Self) -> Self {
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

    pub(super) fn compare(self, other: Self) -> Ordering {
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
    pub(super) fn approximate(self) -> f64 {
        // What is coarser than billionths is held in these, unless it is whole by origin.
        let exponent = if self.exponent > 0 { NANO } else { self.exponent };
        float(self.mantissa, self.exponent - exponent) * float(1, exponent)
    }
}

/// The float next to `mantissa * 10^exponent`.
pub(super) fn float(mantissa: i128, exponent: i64) -> f64 {
    format!("{mantissa}e{exponent}").parse().unwrap_or_default()
}
