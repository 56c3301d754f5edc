//! Conversion of floats to integers.

/// True if a float counts as an integer. As upstream, positive floats may have a relative error of 1e-9.
pub(super) fn is_integral(float: f64) -> bool {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;
    if !float.is_finite() || float.abs() > MAX_EXACT_INTEGER {
        return false;
    }
    let integer = float.trunc();
    if float == integer {
        return true;
    }
    integer > 0.0 && (float - integer) / (float + integer) < 1e-9
}

/// Converts a float to an integer: drops the fraction, and returns the minimum for values out of range, like the processors on
/// which upstream's results were recorded.
pub(super) fn truncate_to_i64(float: f64) -> i64 {
    const OUT_OF_RANGE: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "only within the range")]
    if (-OUT_OF_RANGE..OUT_OF_RANGE).contains(&float) { float as i64 } else { i64::MIN }
}
