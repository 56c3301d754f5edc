//! Amounts as upstream keeps them: small ones as 64 bits with a power of ten, all others as decimals. Which one it is
//! shows: `1000m` is no integer, and `9e18` plus `9e18` is none any more.

use std::cmp::Ordering;

use super::decimal::{Decimal, float};

/// An amount: `1.5Gi`, `100m`.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// `value * 10^scale`.
    Small {
        /// The number.
        value: i64,
        /// The power of ten.
        scale: i64,
    },
    /// All others.
    Decimal(Decimal),
}

impl Amount {
    /// A whole number.
    #[must_use]
    pub const fn whole(value: i64) -> Self {
        Self::Small { value, scale: 0 }
    }

    fn decimal(self) -> Decimal {
        match self {
            Self::Small { value, scale } => Decimal { mantissa: i128::from(value), exponent: scale },
            Self::Decimal(decimal) => decimal,
        }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn sign(self) -> i64 {
        match self {
            Self::Small { value, .. } => value.signum(),
            Self::Decimal(decimal) => i64::try_from(decimal.mantissa.signum()).unwrap_or_default(),
        }
    }

    /// The integer that it is, if it is a small one without a fraction in its spelling.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Small { value, scale: 0 } => Some(value),
            Self::Small { value, scale } => value.checked_mul(power(scale)?),
            Self::Decimal(_) => None,
        }
    }

    /// A float about as large; infinite where there is none.
    #[must_use]
    pub fn approximate(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
            Self::Small { value, scale: 0 } => value as f64,
            Self::Small { value, scale } => float(i128::from(value), 0) * float(1, scale),
            Self::Decimal(decimal) => decimal.approximate(),
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        small_sum(self, other).unwrap_or_else(|| Self::Decimal(self.decimal().plus(other.decimal())))
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    pub(super) fn negated(self) -> Self {
        match self {
            Self::Small { value, scale } if value != i64::MIN => Self::Small { value: -value, scale },
            other => {
                let Decimal { mantissa, exponent } = other.decimal();
                Self::Decimal(Decimal { mantissa: -mantissa, exponent })
            }
        }
    }
}

fn power(scale: i64) -> Option<i64> {
    10_i64.checked_pow(u32::try_from(scale).ok()?)
}

fn small_sum(one: Amount, two: Amount) -> Option<Amount> {
    let (Amount::Small { value: a, scale: at }, Amount::Small { value: b, scale: bt }) = (one, two) else {
        return None;
    };
    if a == 0 || b == 0 {
        return Some(if b == 0 { one } else { two });
    }
    let scale = at.min(bt);
    let at_scale = |value: i64, from: i64| value.checked_mul(power(from - scale)?);
    Some(Amount::Small { value: at_scale(a, at)?.checked_add(at_scale(b, bt)?)?, scale })
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.decimal().compare(other.decimal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn amounts_are_compared_added_and_subtracted() {
        let descending =
            ["1e301", "1e300", "9223372036854775808", "9223372036854775807", "1Gi", "1G", "1001m", "1"];
        assert!(descending.windows(2).all(|pair| of(pair[0]) > of(pair[1]) && of(pair[1]) < of(pair[0])));
        assert_eq!(of("1"), of("1000m"));
        assert_eq!(of("200M"), of("0.2G"));
        assert!(of("-2") < of("-1") && of("-1e300") < of("-1e299"));
        let largest = of("922337203685477580").plus(of("8e18"));
        assert!(largest.integer().is_some());
        assert_eq!(of("9223372036854775807").plus(Amount::whole(1)).integer(), None);
        assert_eq!(of("9223372036854775807").plus(Amount::whole(1)), of("9223372036854775808"));
        assert_eq!(of("50k").plus(of("20")).minus(of("100k")).minus(Amount::whole(-50_000)), of("20"));
        assert_eq!(of("1m").plus(of("999m")).integer(), None);
        assert_eq!(of("1e1000").plus(of("1")), of("1e1000"));
        assert_eq!(of("0").minus(of("1e300")).sign(), -1);
    }
}
