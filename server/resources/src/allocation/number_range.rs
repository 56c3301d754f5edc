//! Random selection of a free number from a range.
//!
//! The lower part of the range is used only after the upper part is exhausted, so that low numbers remain free for Services
//! that request a specific one.

/// The numbers `first..=last`. The first `reserved` numbers are used last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberRange {
    first: u128,
    last: u128,
    reserved: u128,
}

impl NumberRange {
    /// Creates a range. Returns `None` if the range is empty.
    pub(crate) fn new(first: u128, last: u128, reserved: u128) -> Option<Self> {
        (first <= last).then(|| Self { first, last, reserved: reserved.min(last - first + 1) })
    }

    /// Size of the lower part for a range of `size` numbers (upstream's `calculateRangeOffset`): `size / divisor`, at least 16 and
    /// at most `max`; 0 if the range has at most 16 numbers.
    pub(crate) fn reserved_count(size: u128, divisor: u128, max: u128) -> u128 {
        const MIN: u128 = 16;
        if size <= MIN { 0 } else { (size / divisor).clamp(MIN, max) }
    }

    /// True if `number` is in the range.
    pub(crate) fn contains(&self, number: u128) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// Returns a free number. The search starts at a position that `seed` determines.
    pub(crate) fn choose(&self, seed: u128, free: impl Fn(u128) -> bool) -> Option<u128> {
        let upper = self.first + self.reserved;
        let count = (self.last - self.first + 1) - self.reserved;
        scan(upper, count, seed, &free).or_else(|| scan(self.first, self.reserved, seed, &free))
    }
}

/// Checks each of `count` numbers once, starting at a position that `seed` determines.
fn scan(first: u128, count: u128, seed: u128, free: impl Fn(u128) -> bool) -> Option<u128> {
    let start = seed.checked_rem(count)?;
    (0..count).map(|step| first + (start + step) % count).find(|number| free(*number))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_reserved_part_is_sized_as_upstream() {
        for (size, addresses, ports) in
            [(14, 0, 0), (16, 0, 0), (17, 16, 16), (256, 16, 16), (2_768, 173, 86), (65_536, 256, 128)]
        {
            assert_eq!(NumberRange::reserved_count(size, 16, 256), addresses, "{size}");
            assert_eq!(NumberRange::reserved_count(size, 32, 128), ports, "{size}");
        }
    }

    #[test]
    fn the_lower_part_is_used_last() {
        let span = NumberRange::new(10, 19, 4).unwrap();
        assert_eq!(span.choose(3, |_| true), Some(17));
        assert_eq!(span.choose(3, |n| n < 14 || n == 16), Some(16));
        assert_eq!(span.choose(3, |n| n < 14), Some(13));
        assert_eq!(span.choose(3, |_| false), None);
        assert_eq!(NumberRange::new(1, 0, 0), None);
    }

    proptest! {
        #[test]
        fn every_number_is_allocated_once_and_again_after_its_release(
            size in 1_u128..80, reserved in 0_u128..90, seeds in prop::collection::vec(any::<u128>(), 200),
        ) {
            let span = NumberRange::new(100, 100 + size - 1, reserved).unwrap();
            let mut taken = HashSet::new();
            let mut seeds = seeds.into_iter();
            let mut next = |taken: &HashSet<u128>| {
                span.choose(seeds.next().unwrap_or(7), |n| !taken.contains(&n))
            };
            while let Some(number) = next(&taken) {
                prop_assert!(span.contains(number));
                prop_assert!(taken.insert(number));
            }
            prop_assert_eq!(taken.len() as u128, size);
            let released = 100 + size / 2;
            taken.remove(&released);
            prop_assert_eq!(next(&taken), Some(released));
        }
    }
}
