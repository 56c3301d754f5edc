//! Allocates a sum to classes, each as near to its target as its bounds allow (upstream's `computeConcurrencyAllocation`).

/// Minimum target; smaller targets are raised to it, because targets are divisors.
const MIN_TARGET: f64 = 0.001;
/// Sums that differ by less are considered equal.
const EPSILON: f64 = 1e-7;
/// Maximum bisections of the interval of the fair proportion, far more than rounding to whole seats requires.
const STEPS: usize = 200;

/// Target and bounds of one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AllocationClass {
    pub(crate) target: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl AllocationClass {
    fn share_at(self, proportion: f64) -> f64 {
        (self.target.max(MIN_TARGET) * proportion).max(self.lower).min(self.upper)
    }
}

/// Returns the share of each class, and the fair proportion: the ratio of share to target of classes that are not limited by a
/// bound. Returns `None` if the bounds make the sum impossible.
///
/// The total of all shares grows with the proportion, so the proportion for the sum is found by bisection.
pub(crate) fn allocate(sum: f64, classes: &[AllocationClass]) -> Option<(Vec<f64>, f64)> {
    let total_share = |proportion: f64| classes.iter().map(|class| class.share_at(proportion)).sum::<f64>();
    let lowest: f64 = classes.iter().map(|class| class.lower).sum();
    let highest: f64 = classes.iter().map(|class| class.upper).sum();
    if lowest - sum > EPSILON || sum - highest > EPSILON {
        return None;
    }
    let targets: f64 = classes.iter().map(|class| class.target.max(MIN_TARGET)).sum();
    let max_proportions = classes.iter().map(|class| class.upper / class.target.max(MIN_TARGET));
    let (mut low, mut high) = (0.0, max_proportions.fold(0.0, f64::max));
    let mut proportion = sum / targets.max(MIN_TARGET);
    for _ in 0..STEPS {
        let total = total_share(proportion);
        if (total - sum).abs() <= EPSILON {
            break;
        }
        if total < sum {
            low = proportion
        } else {
            high = proportion
        }
        proportion = f64::midpoint(low, high);
    }
    Some((classes.iter().map(|class| class.share_at(proportion)).collect(), proportion))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(target: f64, lower: f64, upper: f64) -> AllocationClass {
        AllocationClass { target, lower, upper }
    }

    #[test]
    fn the_rest_goes_to_classes_that_are_not_limited() {
        let classes = [class(10.0, 0.0, 100.0), class(30.0, 0.0, 100.0)];
        let (seats, proportion) = allocate(80.0, &classes).unwrap();
        assert_eq!(seats, [20.0, 60.0]);
        assert!((proportion - 2.0).abs() < 1e-6);
        let (seats, _) = allocate(80.0, &[class(10.0, 0.0, 5.0), class(30.0, 0.0, 100.0)]).unwrap();
        assert!((seats[0] - 5.0).abs() < 1e-6 && (seats[1] - 75.0).abs() < 1e-5, "{seats:?}");
        assert_eq!(allocate(80.0, &[class(1.0, 0.0, 79.0)]), None);
        assert_eq!(allocate(80.0, &[class(90.0, 81.0, 99.0)]), None);
    }

    proptest! {
        #[test]
        fn the_sum_is_allocated_within_bounds(
            parts in proptest::collection::vec((0_u32..50, 0_u32..50, 0_u32..200), 1..8),
            at in 0.0_f64..=1.0,
        ) {
            let each = parts.iter().map(|(lower, more, room)| {
                class(f64::from(lower + more), f64::from(*lower), f64::from(lower + room))
            });
            let classes: Vec<AllocationClass> = each.collect();
            let lowest: f64 = classes.iter().map(|c| c.lower).sum();
            let highest: f64 = classes.iter().map(|c| c.upper).sum();
            let sum = lowest + (highest - lowest) * at;
            let (seats, _) = allocate(sum, &classes).unwrap();
            let got: f64 = seats.iter().sum();
            prop_assert!((got - sum).abs() < 1e-3, "{} of {}", got, sum);
            for (class, got) in classes.iter().zip(&seats) {
                prop_assert!((class.lower..=class.upper).contains(got));
            }
        }
    }
}
