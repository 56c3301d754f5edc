//! Hints in proportion to the CPU capacity of zones (`topologycache.AddHints`), for Services with the annotation.

use std::collections::BTreeMap;

use super::hints;
use crate::service_endpoints::slice::{Endpoint, HintTarget, Hints, Slice};

/// Maximum fraction by which the load of an endpoint may exceed its share.
const OVERLOAD: f64 = 0.2;

type Counts = BTreeMap<String, usize>;
type Shares = BTreeMap<String, f64>;

/// Number of endpoints for a zone.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    maximum: usize,
    desired: f64,
}

/// Assigns a zone to all ready endpoints, or removes all hints if endpoints would be overloaded. `shares` are the zones' shares
/// in the CPU capacity; `None` if facts about nodes are missing.
pub(super) fn distribute(
    shares: Option<&Shares>,
    create: &mut [Slice],
    update: &mut Vec<Slice>,
    unchanged: Vec<Slice>,
) {
    let every = create.iter().chain(&*update).chain(&unchanged);
    let ready = every.flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.is_ready()).count();
    let Some(allocations) = shares.and_then(|shares| allocate(shares, ready)) else {
        return hints::remove_hints(create, update, unchanged);
    };
    let (mut allocated, mut right) = (Counts::new(), Vec::new());
    for slice in unchanged {
        match hints_by_zone(&slice, &allocated, &allocations) {
            Some(counts) => {
                counts.into_iter().for_each(|(zone, count)| *allocated.entry(zone).or_default() += count);
                right.push(slice);
            }
            None => update.push(slice),
        }
    }
    let written = create.iter_mut().chain(&mut *update).flat_map(|slice| &mut slice.endpoints);
    let mut endpoints: Vec<&mut Endpoint> = written.filter(|endpoint| endpoint.is_ready()).collect();
    let all_in_zones = endpoints.iter().all(|e| e.zone.as_ref().is_some_and(|zone| !zone.is_empty()));
    for endpoint in &mut endpoints {
        let zone = endpoint.zone.clone().unwrap_or_default();
        endpoint.hints = Some(in_zone(&zone));
        *allocated.entry(zone).or_default() += 1;
    }
    if all_in_zones && !allocated.is_empty() {
        let (mut giving, mut receiving) = giving_and_receiving_zones(&allocations, &allocated);
        redistribute(&mut endpoints, &mut giving, &mut receiving);
    } else {
        hints::remove_hints(create, update, right);
    }
}

fn in_zone(zone: &str) -> Hints {
    Hints { for_zones: vec![HintTarget { name: zone.to_owned() }], for_nodes: Vec::new() }
}

/// Returns the number of endpoints for each zone; `None` if every distribution exceeds the overload (`getAllocations`).
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of endpoints are small and not negative"
)]
fn allocate(shares: &Shares, endpoints: usize) -> Option<BTreeMap<String, Allocation>> {
    if shares.len() > endpoints {
        return None;
    }
    let desired = |share: &f64| share * endpoints as f64;
    let minimum = |share: &f64| (desired(share) / (1.0 + OVERLOAD)).ceil() as usize;
    let surplus = endpoints.checked_sub(shares.values().map(minimum).sum())?;
    let allocation = |share: &f64| Allocation {
        maximum: minimum(share) + surplus,
        desired: desired(share).max(minimum(share) as f64),
    };
    Some(shares.iter().map(|(zone, share)| (zone.clone(), allocation(share))).collect())
}

/// Returns the number of endpoints of a slice with hints for each zone; `None` if the slice must be written (`getHintsByZone`).
fn hints_by_zone(
    slice: &Slice,
    allocated: &Counts,
    allocations: &BTreeMap<String, Allocation>,
) -> Option<Counts> {
    let mut counts = Counts::new();
    for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
        let zones =
            endpoint.hints.as_ref().map(|hints| &hints.for_zones).filter(|zones| !zones.is_empty())?;
        for zone in zones {
            allocations.get(&zone.name)?;
            *counts.entry(zone.name.clone()).or_default() += 1;
        }
    }
    let is_within_maximum = |(zone, count): (&String, &usize)| {
        count + allocated.get(zone).copied().unwrap_or(0) <= allocations.get(zone).map_or(0, |a| a.maximum)
    };
    counts.iter().all(is_within_maximum).then_some(counts)
}

/// Returns the number of endpoints that each zone gives to and receives from other zones (`getGivingAndReceivingZones`).
fn giving_and_receiving_zones(
    allocations: &BTreeMap<String, Allocation>,
    allocated: &Counts,
) -> (Counts, Counts) {
    let (mut excess, mut deficit) = (Shares::new(), Shares::new());
    for (zone, allocation) in allocations {
        #[expect(clippy::cast_precision_loss, reason = "counts of endpoints are small")]
        let difference = allocated.get(zone).copied().unwrap_or(0) as f64 - allocation.desired;
        if difference > 0.0 {
            excess.insert(zone.clone(), difference);
        } else if difference < 0.0 {
            deficit.insert(zone.clone(), -difference);
        }
    }
    let (mut giving, mut receiving) = (Counts::new(), Counts::new());
    while let (Some((giver, give)), Some((receiver, receive))) = (largest(&excess), largest(&deficit)) {
        if (give < 1.0 && receive < 1.0) || give < 0.5 || receive < 0.5 {
            break;
        }
        excess.insert(giver.clone(), give - 1.0);
        deficit.insert(receiver.clone(), receive - 1.0);
        *giving.entry(giver).or_default() += 1;
        *receiving.entry(receiver).or_default() += 1;
    }
    (giving, receiving)
}

fn largest(zones: &Shares) -> Option<(String, f64)> {
    let mut maximum: Option<(&String, f64)> = None;
    for (zone, &number) in zones {
        if number > maximum.map_or(0.0, |(_, most)| most) {
            maximum = Some((zone, number));
        }
    }
    maximum.map(|(zone, number)| (zone.clone(), number))
}

/// Moves endpoints from giving to receiving zones (`redistributeHints`).
fn redistribute(endpoints: &mut [&mut Endpoint], giving: &mut Counts, receiving: &mut Counts) {
    for endpoint in endpoints {
        let Some(receiver) = receiving.keys().next().cloned() else { return };
        let zone = endpoint.zone.clone().unwrap_or_default();
        if decrement(giving, &zone) {
            decrement(receiving, &receiver);
            endpoint.hints = Some(in_zone(&receiver));
        }
    }
}

/// Decrements a count. Returns false if the count is 0.
fn decrement(counts: &mut Counts, zone: &str) -> bool {
    let Some(count) = counts.get_mut(zone) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(zone);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_endpoints::slice::Conditions;

    fn slice(zones: &[&str]) -> Slice {
        let endpoint = |(at, zone): (usize, &&str)| Endpoint {
            addresses: vec![format!("10.0.0.{at}")],
            conditions: Conditions { ready: Some(true), ..Conditions::default() },
            zone: (!zone.is_empty()).then(|| (*zone).to_owned()),
            ..Endpoint::default()
        };
        Slice { endpoints: zones.iter().enumerate().map(endpoint).collect(), ..Slice::default() }
    }

    fn shares(pairs: &[(&str, f64)]) -> Shares {
        pairs.iter().map(|(zone, share)| ((*zone).to_owned(), *share)).collect()
    }

    fn hinted(shares: &Shares, zones: &[&str]) -> Vec<String> {
        let mut create = [slice(zones)];
        distribute(Some(shares), &mut create, &mut Vec::new(), Vec::new());
        let hint = |e: &Endpoint| e.hints.as_ref().map_or(String::new(), |h| h.for_zones[0].name.clone());
        create[0].endpoints.iter().map(hint).collect()
    }

    #[test]
    fn endpoints_serve_their_own_zone_and_are_moved_to_zones_with_too_few() {
        let thirds = shares(&[("a", 1.0 / 3.0), ("b", 1.0 / 3.0), ("c", 1.0 / 3.0)]);
        assert_eq!(hinted(&thirds, &["a", "b", "c"]), ["a", "b", "c"]);
        assert_eq!(hinted(&thirds, &["a", "a", "a", "b", "b", "b"]), ["c", "a", "a", "c", "b", "b"]);
        let halves = shares(&[("a", 0.5), ("b", 0.5)]);
        assert_eq!(hinted(&halves, &["a", "a", "a", "a"]), ["b", "b", "a", "a"]);
    }

    #[test]
    fn hints_are_omitted_if_shares_cannot_be_met_or_zones_are_unknown() {
        let thirds = shares(&[("a", 1.0 / 3.0), ("b", 1.0 / 3.0), ("c", 1.0 / 3.0)]);
        assert_eq!(hinted(&thirds, &["a", "b"]), ["", ""]);
        assert_eq!(hinted(&thirds, &["a", "b", ""]), ["", "", ""]);
        let skewed = shares(&[("a", 0.9), ("b", 0.1)]);
        assert_eq!(hinted(&skewed, &["a", "b"]), ["", ""]);
        let mut update = Vec::new();
        let mut before = slice(&["a"]);
        before.endpoints[0].hints = Some(in_zone("a"));
        distribute(None, &mut [], &mut update, vec![before]);
        assert!(update.len() == 1 && update[0].endpoints[0].hints.is_none());
    }
}
