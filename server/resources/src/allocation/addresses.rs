//! Address ranges of Services, and the allocation of addresses during one write.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::AllocationError;
use super::number_range::NumberRange;

/// Address family, spelled as in Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpFamily {
    /// `IPv4`
    V4,
    /// `IPv6`
    V6,
}

impl IpFamily {
    /// Returns the family of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Returns the family with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.name() == name)
    }

    /// Name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Returns the other family.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

/// Addresses of a network that can be allocated: all except the network address and, for IPv4, the broadcast address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressRange {
    network: IpNet,
    span: Option<NumberRange>,
}

impl AddressRange {
    /// Creates the range of a CIDR.
    pub(crate) fn new(network: IpNet) -> Self {
        let (first, last) = (address_to_number(network.network()), address_to_number(network.broadcast()));
        let size = (last - first).saturating_add(1);
        let last = if network.addr().is_ipv4() { last.saturating_sub(1) } else { last };
        let span = first
            .checked_add(1)
            .and_then(|first| NumberRange::new(first, last, NumberRange::reserved_count(size, 16, 256)));
        Self { network: network.trunc(), span }
    }

    fn family(&self) -> IpFamily {
        IpFamily::of(self.network.addr())
    }

    fn contains(&self, address: IpAddr) -> bool {
        IpFamily::of(address) == self.family()
            && self.span.is_some_and(|span| span.contains(address_to_number(address)))
    }

    fn choose(&self, seed: u128, free: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let family = self.family();
        self.span?.choose(seed, |n| free(number_to_address(family, n))).map(|n| number_to_address(family, n))
    }
}

fn address_to_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn number_to_address(family: IpFamily, number: u128) -> IpAddr {
    match family {
        // The numbers of an IPv4 range fit into 32 bits.
        IpFamily::V4 => Ipv4Addr::from_bits(number as u32).into(),
        IpFamily::V6 => Ipv6Addr::from_bits(number).into(),
    }
}

/// Pool of addresses during one write of a Service.
pub(crate) struct AddressPool<'a> {
    /// Ranges in the order in which they are searched.
    pub(crate) ranges: Vec<AddressRange>,
    /// Families of the server, the default one first.
    pub(crate) families: Vec<IpFamily>,
    /// True if another Service has the address of this name.
    pub(crate) is_taken: Box<dyn Fn(&str) -> bool + Send + Sync + 'a>,
    /// True if the write is a dry run, which allocates nothing.
    pub(crate) dry_run: bool,
    /// Addresses that this write allocates.
    pub(crate) allocated: Vec<IpAddr>,
}

impl AddressPool<'_> {
    /// Allocates a specific address.
    pub(crate) fn allocate(&mut self, address: IpAddr) -> Result<(), AllocationError> {
        if !self.ranges.iter().any(|range| range.contains(address)) {
            return Err(AllocationError::AddressOutOfRange);
        }
        if !self.dry_run {
            if !self.is_free(address) {
                return Err(AllocationError::AddressTaken);
            }
            self.allocated.push(address);
        }
        Ok(())
    }

    /// Allocates any free address of a family. A dry run returns the network address, which is never allocated.
    pub(crate) fn allocate_next(&mut self, family: IpFamily, seed: u128) -> Result<IpAddr, AllocationError> {
        let mut ranges = self.ranges.iter().filter(|range| range.family() == family);
        if self.dry_run {
            return ranges.next().map(|range| range.network.network()).ok_or(AllocationError::Full);
        }
        let chosen = ranges.find_map(|range| range.choose(seed, |address| self.is_free(address)));
        let address = chosen.ok_or(AllocationError::Full)?;
        self.allocated.push(address);
        Ok(address)
    }

    fn is_free(&self, address: IpAddr) -> bool {
        !self.allocated.contains(&address) && !(self.is_taken)(&address.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn pool<'a>(cidrs: &[&str], taken: &'a HashSet<String>, dry_run: bool) -> AddressPool<'a> {
        let ranges: Vec<AddressRange> =
            cidrs.iter().map(|cidr| AddressRange::new(cidr.parse().unwrap())).collect();
        let families = ranges.iter().map(AddressRange::family).collect();
        AddressPool {
            ranges,
            families,
            is_taken: Box::new(|name| taken.contains(name)),
            dry_run,
            allocated: Vec::new(),
        }
    }

    #[test]
    fn a_free_address_in_a_range_is_allocated() {
        let taken = HashSet::from(["10.0.0.9".to_owned()]);
        let rows = [
            ("10.0.0.8", Ok(())),
            ("10.0.0.9", Err(AllocationError::AddressTaken)),
            ("10.0.0.0", Err(AllocationError::AddressOutOfRange)),
            ("10.0.0.255", Err(AllocationError::AddressOutOfRange)),
            ("10.0.1.1", Err(AllocationError::AddressOutOfRange)),
            ("fd00::", Err(AllocationError::AddressOutOfRange)),
            ("fd00::ffff", Ok(())),
        ];
        for (address, expected) in rows {
            let mut pool = pool(&["10.0.0.0/24", "fd00::/112"], &taken, false);
            assert_eq!(pool.allocate(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn each_address_of_a_range_except_its_ends_is_allocated_once() {
        for (cidr, count) in [("10.0.0.0/28", 14), ("10.0.0.0/30", 2), ("10.0.0.0/32", 0), ("fd00::/124", 15)]
        {
            let (taken, mut allocated) = (HashSet::new(), HashSet::new());
            let mut pool = pool(&[cidr], &taken, false);
            let family = pool.families[0];
            while let Ok(address) = pool.allocate_next(family, 5) {
                assert!(allocated.insert(address));
            }
            assert_eq!(allocated.len(), count, "{cidr}");
        }
    }

    #[test]
    fn a_dry_run_allocates_nothing_and_returns_the_network_address() {
        let taken = HashSet::from(["10.0.0.9".to_owned()]);
        let mut pool = pool(&["10.0.0.0/24"], &taken, true);
        assert_eq!(pool.allocate_next(IpFamily::V4, 9).unwrap().to_string(), "10.0.0.0");
        assert_eq!(pool.allocate("10.0.0.9".parse().unwrap()), Ok(()));
        assert_eq!(pool.allocate("11.0.0.9".parse().unwrap()), Err(AllocationError::AddressOutOfRange));
        assert!(pool.allocated.is_empty());
    }
}
