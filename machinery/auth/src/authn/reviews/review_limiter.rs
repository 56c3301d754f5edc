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
const MIN_CLIENTS: usize = 2;

const SECOND: Duration = Duration::from_secs(1);

/// Error: more unknown tokens arrive than can be reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many unknown tokens are presented, please try again later")]
pub struct TooManyReviews;

/// Limiter of reviews of unknown tokens.
#[derive(Debug)]
pub(super) struct ReviewLimiter(Mutex<ReviewCounts>);

#[derive(Debug)]
struct ReviewCounts {
    running: usize,
    /// Number of reviews started since `window_start`.
    started: usize,
    window_start: Instant,
    /// Clients with running reviews or with reviews started since `window_start`. Their number is at most the sum of both limits.
    clients: HashMap<IpAddr, ClientCounts>,
}

#[derive(Debug, Default)]
struct ClientCounts {
    running: usize,
    started: usize,
}

/// Permit for one review, returned when dropped.
#[derive(Debug)]
pub(super) struct ReviewPermit<'a> {
    reviews: &'a ReviewLimiter,
    client: IpAddr,
}

impl Default for ReviewLimiter {
    fn default() -> Self {
        Self(Mutex::new(ReviewCounts {
            running: 0,
            started: 0,
            window_start: Instant::now(),
            clients: HashMap::new(),
        }))
    }
}

impl ReviewLimiter {
    /// Acquires a permit for a review by this client, unless a limit is reached.
    pub(super) fn acquire(&self, client: IpAddr, now: Instant) -> Result<ReviewPermit<'_>, TooManyReviews> {
        let client = client_network(client);
        let mut counts = self.0.lock();
        let counts = &mut *counts;
        if now.saturating_duration_since(counts.window_start) >= SECOND {
            (counts.started, counts.window_start) = (0, now);
            counts.clients.retain(|_, client| client.running > 0);
            counts.clients.values_mut().for_each(|client| client.started = 0);
        }
        if is_full(counts.running, counts.started, 1) {
            return Err(TooManyReviews);
        }
        let client_counts = counts.clients.entry(client).or_default();
        if is_full(client_counts.running, client_counts.started, MIN_CLIENTS) {
            return Err(TooManyReviews);
        }
        client_counts.running += 1;
        client_counts.started += 1;
        counts.running += 1;
        counts.started += 1;
        Ok(ReviewPermit { reviews: self, client })
    }
}

fn is_full(running: usize, started: usize, shares: usize) -> bool {
    running >= MAX_UNKNOWN_REVIEWS / shares || started >= MAX_UNKNOWN_REVIEWS_PER_SECOND / shares
}

/// Returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, since one client usually
/// has a whole /64.
fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Drop for ReviewPermit<'_> {
    fn drop(&mut self) {
        let mut counts = self.reviews.0.lock();
        counts.running -= 1;
        if let Some(client_counts) = counts.clients.get_mut(&self.client) {
            client_counts.running -= 1;
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
    fn running_reviews_and_reviews_per_second_are_limited() {
        let (reviews, begin) = (ReviewLimiter::default(), Instant::now());
        let all: Vec<_> =
            (0..MAX_UNKNOWN_REVIEWS).map(|n| reviews.acquire(client(n), begin).unwrap()).collect();
        assert!(reviews.acquire(client(99), begin + 2 * SECOND).is_err(), "all permits are in use");
        drop(all);
        let later = begin + 4 * SECOND;
        for n in 0..MAX_UNKNOWN_REVIEWS_PER_SECOND {
            drop(reviews.acquire(client(n), later).unwrap());
        }
        assert!(reviews.acquire(client(101), later + SECOND / 2).is_err());
        assert!(reviews.acquire(client(101), later + SECOND).is_ok());
    }

    #[test]
    fn one_client_gets_at_most_half_of_the_limits() {
        let (reviews, begin) = (ReviewLimiter::default(), Instant::now());
        let permits: Vec<_> = std::iter::from_fn(|| reviews.acquire(client(1), begin).ok()).collect();
        assert_eq!(permits.len(), MAX_UNKNOWN_REVIEWS / 2);
        assert!(reviews.acquire(client(2), begin).is_ok());
        drop(permits);
        let started = std::iter::from_fn(|| reviews.acquire(client(1), begin).map(drop).ok()).count();
        assert_eq!(started, (MAX_UNKNOWN_REVIEWS_PER_SECOND - MAX_UNKNOWN_REVIEWS) / 2);
        assert!(reviews.acquire(client(2), begin).is_ok());
        assert!(reviews.acquire(client(1), begin + SECOND).is_ok());
        assert_eq!(reviews.0.lock().clients.len(), 1, "idle clients are removed");
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        for (a, b, same) in [
            ("2001:db8::1", "2001:db8::ffff:0:0:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            let network = |text: &str| client_network(text.parse().unwrap());
            assert_eq!(network(a) == network(b), same, "{a} {b}");
        }
    }
}
