//! Rounds of mutation: all mutating steps run once, and a second time if a policy or webhook changed the object (upstream's
//! `admission.ReinvocationContext`).

use std::collections::HashSet;

use portico_machinery::Object;

/// State of the rounds of one request.
#[derive(Default)]
pub(crate) struct Rounds {
    /// True during the second round.
    pub(crate) is_reinvoke: bool,
    /// True if a second round is required.
    pub(crate) should_reinvoke: bool,
}

/// Selection of the webhooks, or policies, that run in the second round.
#[derive(Default)]
pub(crate) struct Reinvocation {
    /// IDs of those that ran and are reinvoked if the object changes afterwards.
    previously_invoked: HashSet<String>,
    /// IDs of those after which the object was changed.
    to_reinvoke: HashSet<String>,
    /// The object at the end of the first round.
    output: Option<Object>,
}

impl Rounds {
    /// Advances to the second round if one is required. Returns true if there is another round.
    pub(crate) fn advance(&mut self) -> bool {
        let next = self.should_reinvoke && !self.is_reinvoke;
        self.is_reinvoke |= next;
        next
    }

    /// Returns the number of the round for audit annotations.
    pub(crate) fn number(&self) -> usize {
        usize::from(self.is_reinvoke)
    }
}

impl Reinvocation {
    /// Begins a round. If other steps changed the object since the first round, all previously invoked ones are reinvoked.
    pub(crate) fn begin(&mut self, rounds: &Rounds, object: Option<&Object>) {
        if rounds.is_reinvoke && self.output.as_ref() != object {
            self.require_reinvoking();
        }
    }

    /// Ends a round. The object is stored only if there are webhooks or policies that may be reinvoked.
    pub(crate) fn end(&mut self, rounds: &Rounds, object: Option<&Object>) {
        if !rounds.is_reinvoke && !self.previously_invoked.is_empty() {
            self.output = object.cloned();
        }
    }

    /// True if a webhook or policy runs in this round: in the second round only if the object was changed after it ran.
    pub(crate) fn is_due(&self, rounds: &Rounds, id: &str) -> bool {
        !rounds.is_reinvoke || self.to_reinvoke.contains(id)
    }

    /// Schedules all previously invoked webhooks or policies for the second round, because the object was changed.
    pub(crate) fn require_reinvoking(&mut self) {
        self.to_reinvoke.extend(self.previously_invoked.drain());
    }

    /// Records that a webhook or policy ran that is reinvoked if the object changes.
    pub(crate) fn add_invoked(&mut self, id: &str) {
        self.previously_invoked.insert(id.to_owned());
    }
}

#[cfg(test)]
mod tests;
