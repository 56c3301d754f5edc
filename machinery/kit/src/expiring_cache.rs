//! What somebody else answered lately, by what they were asked (upstream's `LRUExpireCache`).

use std::time::{Duration, Instant};

use hashlink::LruCache;
use parking_lot::Mutex;

/// How many answers of one webhook are kept; that which was used longest ago goes first.
pub const MAX_ANSWERS: usize = 8192;

/// See the module.
pub struct Answers<A>(Mutex<LruCache<Box<str>, Known<A>>>);

struct Known<A> {
    answer: A,
    until: Instant,
}

impl<A> Default for Answers<A> {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_ANSWERS)))
    }
}

impl<A: Clone> Answers<A> {
    /// The answer that is good at this time.
    #[must_use]
    pub fn get(&self, question: &str, now: Instant) -> Option<A> {
        let mut known = self.0.lock();
        let found = known.get(question)?;
        if found.until <= now {
            known.remove(question);
            return None;
        }
        Some(found.answer.clone())
    }

    /// Forgets what was answered.
    pub fn forget(&self, question: &str) {
        self.0.lock().remove(question);
    }

    /// Keeps an answer for this long from now on.
    pub fn keep(&self, question: &str, answer: A, now: Instant, life: Duration) {
        if let Some(until) = now.checked_add(life).filter(|until| *until > now) {
            self.0.lock().insert(question.into(), Known { answer, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    #[test]
    fn an_answer_is_good_for_its_life() {
        let (answers, now) = (Answers::default(), Instant::now());
        answers.keep("a", 1, now, TTL);
        answers.keep("off", 2, now, Duration::ZERO);
        assert_eq!(answers.get("a", now + TTL - Duration::from_nanos(1)), Some(1));
        assert_eq!(answers.get("a", now + TTL), None);
        assert_eq!(answers.get("off", now), None);
    }

    #[test]
    fn the_answer_that_was_used_longest_ago_goes_first() {
        let (answers, now) = (Answers::default(), Instant::now());
        (0..MAX_ANSWERS).for_each(|n| answers.keep(&n.to_string(), n, now, TTL));
        assert_eq!(answers.get("0", now), Some(0));
        answers.keep("more", 1, now, TTL);
        assert_eq!((answers.get("0", now), answers.get("1", now)), (Some(0), None));
    }
}
