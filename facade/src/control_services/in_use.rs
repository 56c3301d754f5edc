//! Which control service is in use, and how each one is: one value, so that nobody sees half of a change.

use super::member::State;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InUse {
    current: usize,
    states: Vec<State>,
}

impl InUse {
    /// The first of so many, of which nothing is known.
    pub(super) fn new(members: usize) -> Self {
        Self { current: 0, states: vec![State::Unknown; members] }
    }

    /// The one in use.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// How one is.
    pub(crate) fn state(&self, member: usize) -> State {
        self.states[member]
    }

    /// How all are.
    pub(super) fn states(&self) -> &[State] {
        &self.states
    }

    /// How many are to be used.
    pub(crate) fn serving(&self) -> usize {
        self.states.iter().filter(|state| **state == State::Serving).count()
    }

    /// One is in another state; whether that is news.
    pub(super) fn set_state(&mut self, member: usize, state: State) -> bool {
        std::mem::replace(&mut self.states[member], state) != state
    }

    /// Another one is used from now on.
    pub(super) fn move_to(&mut self, member: usize) {
        self.current = member;
    }
}
