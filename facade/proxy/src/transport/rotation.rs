//! Selection of the address for the next request.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Round robin over the addresses of a backend, by weight if they have weights.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    next: AtomicUsize,
    /// Addresses in the order of their turns; empty if all have the same weight.
    schedule: Box<[usize]>,
    weights: Vec<u32>,
}

impl Rotation {
    /// Creates the rotation. Weights of another number of addresses belong to an outdated set, and are ignored.
    pub(super) fn new(targets: usize, weights: &[u32]) -> Self {
        if weights.len() != targets {
            return Self::default();
        }
        Self { next: AtomicUsize::new(0), schedule: schedule(weights), weights: weights.to_vec() }
    }

    /// Returns the number of the next turn.
    pub(super) fn next(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the address to try in this turn after `step` others.
    pub(super) fn target(&self, turn: usize, step: usize, targets: usize) -> usize {
        match self.schedule.len() {
            0 => turn.wrapping_add(step) % targets,
            turns => (self.schedule[turn % turns] + step) % targets,
        }
    }

    /// Returns the weight of an address; `None` if all have the same.
    pub(super) fn weight(&self, target: usize) -> Option<u32> {
        self.weights.get(target).copied()
    }

    /// Returns true for an address with weight 0, which only gets requests that no other accepts.
    pub(super) fn is_last_resort(&self, target: usize) -> bool {
        self.weights.get(target) == Some(&0)
    }
}

/// Schedules each address as often as its weight, with heavy addresses spread out.
fn schedule(weights: &[u32]) -> Box<[usize]> {
    let total: i64 = weights.iter().map(|weight| i64::from(*weight)).sum();
    let mut credit = vec![0_i64; weights.len()];
    let mut turns = Vec::new();
    for _ in 0..total {
        credit.iter_mut().zip(weights).for_each(|(credit, weight)| *credit += i64::from(*weight));
        // The first one if several are equal.
        let heaviest = credit.iter().enumerate().rev().max_by_key(|(_, credit)| **credit);
        let Some((chosen, _)) = heaviest else { break };
        credit[chosen] -= total;
        turns.push(chosen);
    }
    turns.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_rotate_by_weight() {
        assert_eq!(*schedule(&[3, 1]), [0, 0, 1, 0]);
        assert_eq!(*schedule(&[1, 0, 1]), [0, 2]);
        let rotation = Rotation::new(2, &[]);
        assert_eq!([0, 1, 2].map(|turn| rotation.target(turn, 0, 2)), [0, 1, 0]);
        let rotation = Rotation::new(2, &[3, 1]);
        assert_eq!([0, 1, 2, 3, 4].map(|turn| rotation.target(turn, 0, 2)), [0, 0, 1, 0, 0]);
        assert_eq!(rotation.target(2, 1, 2), 0, "the next attempt uses the other target");
        assert!(Rotation::new(2, &[0, 1]).is_last_resort(0) && !rotation.is_last_resort(1));
    }
}
