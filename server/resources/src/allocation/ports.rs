//! Allocation of node ports during one write.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::Refusal;
use super::span::Span;

/// First port that a dry run returns.
const DRY_RUN_FIRST: u16 = 32_769;

/// Pool of node ports during one write of a Service.
pub(crate) struct PortPool<'a> {
    /// All ports of the pool.
    pub(crate) range: RangeInclusive<u16>,
    /// True if another Service has the port of this name.
    pub(crate) taken: Box<dyn Fn(&str) -> bool + Send + Sync + 'a>,
    /// True if the write is a dry run, which allocates nothing.
    pub(crate) dry_run: bool,
    /// Ports that this write allocates.
    pub(crate) claimed: BTreeSet<u16>,
}

impl PortPool<'_> {
    /// Allocates a specific port. `number` comes from the request and may be out of range.
    pub(crate) fn claim(&mut self, number: i64) -> Result<(), Refusal> {
        let (first, last) = (*self.range.start(), *self.range.end());
        let port = u16::try_from(number).ok().filter(|port| self.range.contains(port));
        let port = port.ok_or(Refusal::PortOutside(first, last))?;
        if !self.is_free(port) {
            return Err(Refusal::PortTaken);
        }
        self.claimed.insert(port);
        Ok(())
    }

    /// Allocates any free port. A dry run returns consecutive numbers.
    pub(crate) fn next(&mut self, seed: u128) -> Result<u16, Refusal> {
        let port = if self.dry_run {
            self.claimed.last().map_or(DRY_RUN_FIRST, |last| last.saturating_add(1))
        } else {
            let (first, last) = (u128::from(*self.range.start()), u128::from(*self.range.end()));
            let size = (last + 1).saturating_sub(first);
            let span = Span::new(first, last, Span::reserve(size, 32, 128)).ok_or(Refusal::Full)?;
            // The numbers of the span come from `u16`s.
            span.choose(seed, |n| self.is_free(n as u16)).ok_or(Refusal::Full)? as u16
        };
        self.claimed.insert(port);
        Ok(port)
    }

    fn is_free(&self, port: u16) -> bool {
        !self.claimed.contains(&port) && !(self.taken)(&port.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(dry_run: bool) -> PortPool<'static> {
        let taken = Box::new(|name: &str| name == "30005");
        PortPool { range: 30_000..=30_009, taken, dry_run, claimed: BTreeSet::new() }
    }

    #[test]
    fn a_port_is_given_once() {
        let mut pool = pool(false);
        assert_eq!(pool.claim(30_001), Ok(()));
        assert_eq!(pool.claim(30_001), Err(Refusal::PortTaken));
        assert_eq!(pool.claim(30_005), Err(Refusal::PortTaken));
        for number in [80, -1, 70_000] {
            assert_eq!(pool.claim(number), Err(Refusal::PortOutside(30_000, 30_009)));
        }
        let mut given: Vec<u16> = std::iter::from_fn(|| pool.next(3).ok()).collect();
        given.sort_unstable();
        assert_eq!(given, [30_000, 30_002, 30_003, 30_004, 30_006, 30_007, 30_008, 30_009]);
    }

    #[test]
    fn a_dry_run_counts_up() {
        let mut pool = pool(true);
        assert_eq!((pool.next(1), pool.next(1)), (Ok(32_769), Ok(32_770)));
    }
}
