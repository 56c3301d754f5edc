//! Floats that count as whole numbers.

/// Whether a float counts as a whole number: as upstream, a relative error of 1e-9 is forgiven to positive ones.
pub(super) fn is_integral(float: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    if !float.is_finite() || float.abs() > MOST {
        return false;
    }
    let whole = float.trunc();
    if float == whole {
        return true;
    }
    whole > 0.0 && (float - whole) / (float + whole) < 1e-9
}

/// A float as a whole number: the fraction goes, and what is out of range is the least number, as the processors that
/// upstream's reference runs on have it.
pub(super) fn truncated(float: f64) -> i64 {
    const OVER: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "only within the range")]
    if (-OVER..OVER).contains(&float) { float as i64 } else { i64::MIN }
}
