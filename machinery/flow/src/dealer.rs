//! Shuffle sharding: deals a hand of queues to a flow by its hash (upstream's `shufflesharding.Dealer`).

use aws_lc_rs::digest::{Context, SHA256};

/// Maximum number of hash bits for a hand; with more bits, the distribution of the last card would not be uniform.
const MAX_HASH_BITS: f64 = 60.0;
/// Maximum size of a deck.
const MAX_DECK: u32 = 1 << 26;
/// Maximum size of a hand that 60 bits allow, for any deck that is larger than the hand.
const MAX_HAND: usize = 15;

/// Dealer of hands of a fixed size from a deck of a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealer {
    deck: u32,
    hand: usize,
}

impl Dealer {
    /// Returns a dealer, or `None` if such hands need more than 60 bits.
    #[must_use]
    pub fn new(deck: u32, hand: u32) -> Option<Self> {
        let bits = f64::from(deck).log2() * f64::from(hand);
        let fits = (1..=deck).contains(&hand) && deck <= MAX_DECK && bits.ceil() <= MAX_HASH_BITS;
        let hand = hand as usize;
        (fits && hand <= MAX_HAND).then_some(Self { deck, hand })
    }

    /// Returns distinct numbers below the size of the deck, in the order of dealing.
    pub fn deal(self, mut hash: u64) -> impl ExactSizeIterator<Item = usize> + Clone {
        let mut remainders = [0_u64; MAX_HAND];
        let mut cards = [0_usize; MAX_HAND];
        for (at, remainder) in remainders.iter_mut().take(self.hand).enumerate() {
            let remaining = u64::from(self.deck) - at as u64;
            *remainder = hash % remaining;
            hash /= remaining;
        }
        for at in 0..self.hand {
            let mut card = remainders[at];
            for earlier in (0..at).rev() {
                card += u64::from(card >= remainders[earlier]);
            }
            cards[at] = card as usize;
        }
        cards.into_iter().take(self.hand)
    }
}

/// Returns the hash of a flow, which is identical in all processes and releases.
#[must_use]
pub(crate) fn hash_flow(schema: &str, distinguisher: &str) -> u64 {
    let mut context = Context::new(&SHA256);
    context.update(schema.as_bytes());
    context.update(&[0]);
    context.update(distinguisher.as_bytes());
    let digest = context.finish();
    let first = digest.as_ref().iter().take(8).rev();
    first.fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hand_that_needs_more_than_sixty_bits_is_not_dealt() {
        for (deck, hand, dealt) in
            [(128, 6, true), (1, 1, true), (0, 1, false), (4, 0, false), (4, 5, false), (1024, 7, false)]
        {
            assert_eq!(Dealer::new(deck, hand).is_some(), dealt, "{deck} {hand}");
        }
    }

    #[test]
    fn the_hash_of_a_flow_equals_upstreams() {
        // First eight bytes, little endian, of SHA-256 of "a\0b".
        assert_eq!(hash_flow("a", "b"), 0xd3b1_bc1b_ae71_b259);
        assert_ne!(hash_flow("a", "b"), hash_flow("ab", ""));
        assert_ne!(hash_flow("a", "b"), hash_flow("", "a\0b"));
    }

    proptest! {
        #[test]
        fn a_hand_has_different_cards_of_the_deck(hash: u64, deck in 1_u32..200, hand in 1_u32..7) {
            let Some(dealer) = Dealer::new(deck, hand) else { return Ok(()) };
            let cards: BTreeSet<usize> = dealer.deal(hash).collect();
            prop_assert_eq!(cards.len(), hand as usize);
            prop_assert!(cards.iter().all(|card| *card < deck as usize));
        }
    }

    #[test]
    fn flows_are_spread_over_all_queues_evenly() {
        let dealer = Dealer::new(64, 6).unwrap();
        let mut times = [0_u32; 64];
        let flows = 20_000;
        for flow in 0..flows {
            dealer.deal(hash_flow("s", &format!("user-{flow}"))).for_each(|card| times[card] += 1);
        }
        let fair = f64::from(flows) * 6.0 / 64.0;
        for (card, times) in times.into_iter().enumerate() {
            let off = (f64::from(times) - fair).abs() / fair;
            assert!(off < 0.15, "queue {card} was dealt {times} times, fair are {fair}");
        }
    }

    #[test]
    fn one_heavy_flow_seldom_shares_its_whole_hand_with_another() {
        let dealer = Dealer::new(128, 6).unwrap();
        let hand = |user: u32| dealer.deal(hash_flow("s", &user.to_string())).collect::<BTreeSet<_>>();
        let heavy = hand(0);
        let squished = (1..10_000).filter(|user| hand(*user).is_subset(&heavy)).count();
        assert_eq!(squished, 0);
    }
}
