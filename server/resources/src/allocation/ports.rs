//! Allocation of node ports during one write.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::AllocationError;
use super::number_range::NumberRange;

/// First port that a dry run returns.
const DRY_RUN_FIRST: u16 = 32_769;

/// Pool of node ports during one write of a Service.
pub(crate) struct PortPool<'a> {
    /// All ports of the pool.
    pub(crate) range: RangeInclusive<u16>,
    /// True if another Service has the port of this name.
    pub(crate) is_taken: Box<dyn Fn(&str) -> bool + Send + Sync + 'a>,
    /// True if the write is a dry run, which allocates nothing.
    pub(crate) dry_run: bool,
    /// Ports that this write allocates.
    pub(crate) allocated: BTreeSet<u16>,
}

impl PortPool<'_> {
    /// Allocates a specific port. `number` comes from the request and may be out of range.
    pub(crate) fn allocate(&mut self, number: i64) -> Result<(), AllocationError> {
        let (first, last) = (*self.range.start(), *self.range.end());
        let port = u16::try_from(number).ok().filter(|port| self.range.contains(port));
        let port = port.ok_or(AllocationError::PortOutOfRange(first, last))?;
        if !self.is_free(port) {
            return Err(AllocationError::PortTaken);
        }
        self.allocated.insert(port);
        Ok(())
    }

    /// Allocates any free port. A dry run returns consecutive numbers.
    pub(crate) fn allocate_next(&mut self, seed: u128) -> Result<u16, AllocationError> {
        let port = if self.dry_run {
            self.allocated.last().map_or(DRY_RUN_FIRST, |last| last.saturating_add(1))
        } else {
            let (first, last) = (u128::from(*self.range.start()), u128::from(*self.range.end()));
            let size = (last + 1).saturating_sub(first);
            let span = NumberRange::new(first, last, NumberRange::reserved_count(size, 32, 128))
                .ok_or(AllocationError::Full)?;
            // The numbers of the span come from `u16`s.
            span.choose(seed, |n| self.is_free(n as u16)).ok_or(AllocationError::Full)? as u16
        };
        self.allocated.insert(port);
        Ok(port)
    }

    fn is_free(&self, port: u16) -> bool {
        !self.allocated.contains(&port) && !(self.is_taken)(&port.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(dry_run: bool) -> PortPool<'static> {
        let is_taken = Box::new(|name: &str| name == "30005");
        PortPool { range: 30_000..=30_009, is_taken, dry_run, allocated: BTreeSet::new() }
    }

    #[test]
    fn a_port_is_allocated_once() {
        let mut pool = pool(false);
        assert_eq!(pool.allocate(30_001), Ok(()));
        assert_eq!(pool.allocate(30_001), Err(AllocationError::PortTaken));
        assert_eq!(pool.allocate(30_005), Err(AllocationError::PortTaken));
        for number in [80, -1, 70_000] {
            assert_eq!(pool.allocate(number), Err(AllocationError::PortOutOfRange(30_000, 30_009)));
        }
        let mut allocated: Vec<u16> = std::iter::from_fn(|| pool.allocate_next(3).ok()).collect();
        allocated.sort_unstable();
        assert_eq!(allocated, [30_000, 30_002, 30_003, 30_004, 30_006, 30_007, 30_008, 30_009]);
    }

    #[test]
    fn a_dry_run_returns_consecutive_ports() {
        let mut pool = pool(true);
        assert_eq!((pool.allocate_next(1), pool.allocate_next(1)), (Ok(32_769), Ok(32_770)));
    }
}
