//! Limits on reviews of unknown tokens: any client can invent tokens, and each review consumes resources of the reviewer.
//!
//! One client can use at most half of the limit, so that a flood of one client does not block other clients.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Concurrent reviews of tokens that only a webhook or a bootstrap token can know and that were not valid
/// within ten minutes.
///
/// Limit (Authentication and authorization): 429 with `Retry-After: 1`.
pub const MAX_UNKNOWN_REVIEWS: usize = 16;
/// Such reviews that start within one second.
///
/// Limit (Authentication and authorization): 429 with `Retry-After: 1`.
pub const MAX_UNKNOWN_REVIEWS_PER_SECOND: usize = 100;

/// Minimum number of clients that share the limits.
const CLIENTS: usize = 2;

const SECOND: Duration = Duration::from_secs(1);

/// Error: more unknown tokens arrive than can be reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many unknown tokens are presented, please try again later")]
pub struct TooManyReviews;

/// Limiter of reviews of unknown tokens.
#[derive(Debug)]
pub(super) struct UnknownReviews(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    under_way: usize,
    /// Number of reviews started since `window_start`.
    begun: usize,
    since: Instant,
    /// Clients with running reviews or with reviews started since `window_start`. Their number is at most the sum of both limits.
    clients: HashMap<IpAddr, OfClient>,
}

#[derive(Debug, Default)]
struct OfClient {
    under_way: usize,
    begun: usize,
}

/// Permit for one review, returned when dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    reviews: &'a UnknownReviews,
    client: IpAddr,
}

impl Default for UnknownReviews {
    fn default() -> Self {
        Self(Mutex::new(Counts { under_way: 0, begun: 0, since: Instant::now(), clients: HashMap::new() }))
    }
}

impl UnknownReviews {
    /// Acquires a permit for a review by this client, unless a limit is reached.
    pub(super) fn begin(&self, client: IpAddr, now: Instant) -> Result<UnderWay<'_>, TooManyReviews> {
        let client = network(client);
        let mut counts = self.0.lock();
        let counts = &mut *counts;
        if now.saturating_duration_since(counts.since) >= SECOND {
            (counts.begun, counts.since) = (0, now);
            counts.clients.retain(|_, of| of.under_way > 0);
            counts.clients.values_mut().for_each(|of| of.begun = 0);
        }
        if is_full(counts.under_way, counts.begun, 1) {
            return Err(TooManyReviews);
        }
        let of_client = counts.clients.entry(client).or_default();
        if is_full(of_client.under_way, of_client.begun, CLIENTS) {
            return Err(TooManyReviews);
        }
        of_client.under_way += 1;
        of_client.begun += 1;
        counts.under_way += 1;
        counts.begun += 1;
        Ok(UnderWay { reviews: self, client })
    }
}

fn is_full(under_way: usize, begun: usize, shares: usize) -> bool {
    under_way >= MAX_UNKNOWN_REVIEWS / shares || begun >= MAX_UNKNOWN_REVIEWS_PER_SECOND / shares
}

/// Returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, since one client usually
/// has a whole /64.
fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut counts = self.reviews.0.lock();
        counts.under_way -= 1;
        if let Some(of_client) = counts.clients.get_mut(&self.client) {
            of_client.under_way -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: usize) -> IpAddr {
        format!("192.0.2.{n}").parse().unwrap()
    }

    #[test]
    fn so_many_are_under_way_and_so_many_begin_in_a_second() {
        let (reviews, begin) = (UnknownReviews::default(), Instant::now());
        let all: Vec<_> =
            (0..MAX_UNKNOWN_REVIEWS).map(|n| reviews.begin(client(n), begin).unwrap()).collect();
        assert!(reviews.begin(client(99), begin + 2 * SECOND).is_err(), "all places are taken");
        drop(all);
        let later = begin + 4 * SECOND;
        for n in 0..MAX_UNKNOWN_REVIEWS_PER_SECOND {
            drop(reviews.begin(client(n), later).unwrap());
        }
        assert!(reviews.begin(client(101), later + SECOND / 2).is_err());
        assert!(reviews.begin(client(101), later + SECOND).is_ok());
    }

    #[test]
    fn one_client_leaves_half_of_them_to_others() {
        let (reviews, begin) = (UnknownReviews::default(), Instant::now());
        let taken: Vec<_> = std::iter::from_fn(|| reviews.begin(client(1), begin).ok()).collect();
        assert_eq!(taken.len(), MAX_UNKNOWN_REVIEWS / 2);
        assert!(reviews.begin(client(2), begin).is_ok());
        drop(taken);
        let begun = std::iter::from_fn(|| reviews.begin(client(1), begin).map(drop).ok()).count();
        assert_eq!(begun, (MAX_UNKNOWN_REVIEWS_PER_SECOND - MAX_UNKNOWN_REVIEWS) / 2);
        assert!(reviews.begin(client(2), begin).is_ok());
        assert!(reviews.begin(client(1), begin + SECOND).is_ok());
        assert_eq!(reviews.0.lock().clients.len(), 1, "who has gone is forgotten");
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        for (a, b, same) in [
            ("2001:db8::1", "2001:db8::ffff:0:0:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            let of = |text: &str| network(text.parse().unwrap());
            assert_eq!(of(a) == of(b), same, "{a} {b}");
        }
    }
}
