//! Rounds of mutation: all who change objects are asked once, and once more when one of the last ones has changed something
//! (upstream's `admission.ReinvocationContext`).

use std::collections::HashSet;

use portico_machinery::Object;

/// What a request's rounds share.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Whether this is the second round.
    pub(crate) again: bool,
    /// Whether a second round is wanted.
    pub(crate) wanted: bool,
}

/// Which webhooks, or which policies, are asked in the second round.
#[derive(Default)]
pub(crate) struct Reinvocation {
    /// Those that were asked, and would be again if something changed behind them.
    asked: HashSet<String>,
    /// Those behind which something has changed.
    wanted: HashSet<String>,
    /// What the last round made of the object.
    output: Option<Object>,
}

impl Rounds {
    /// Goes on to the second round where one is wanted. Whether there is one more.
    pub(crate) fn go_on(&mut self) -> bool {
        let next = self.wanted && !self.again;
        self.again |= next;
        next
    }

    /// The number that annotations know the round by.
    pub(crate) fn number(&self) -> usize {
        usize::from(self.again)
    }
}

impl Reinvocation {
    /// Begins a round: what others have changed since the last one concerns all.
    pub(crate) fn begin(&mut self, rounds: &Rounds, object: Option<&Object>) {
        if rounds.again && self.output.as_ref() != object {
            self.changed();
        }
    }

    /// Ends a round. What it made of the object only matters to those who would be asked again.
    pub(crate) fn end(&mut self, rounds: &Rounds, object: Option<&Object>) {
        if !rounds.again && !self.asked.is_empty() {
            self.output = object.cloned();
        }
    }

    /// Whether one is asked in this round: in the second those alone behind which something has changed.
    pub(crate) fn is_due(&self, rounds: &Rounds, id: &str) -> bool {
        !rounds.again || self.wanted.contains(id)
    }

    /// Something has changed: those that were asked before want to be asked again.
    pub(crate) fn changed(&mut self) {
        self.wanted.extend(self.asked.drain());
    }

    /// Notes that one was asked that wants to be asked again when something changes.
    pub(crate) fn asked(&mut self, id: &str) {
        self.asked.insert(id.to_owned());
    }
}

#[cfg(test)]
mod tests;
