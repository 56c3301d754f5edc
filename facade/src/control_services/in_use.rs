//! The control service in use and the states of all, as one value, so that readers never see a part of a change.

use super::member::State;

/// States of all control services, and the one in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InUse {
    current: usize,
    states: Vec<State>,
}

impl InUse {
    /// Uses the first of `members` control services; all states are unknown.
    pub(super) fn new(members: usize) -> Self {
        Self { current: 0, states: vec![State::Unknown; members] }
    }

    /// Index of the control service in use.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// State of one control service.
    pub(crate) fn state(&self, member: usize) -> State {
        self.states[member]
    }

    /// States of all control services.
    pub(super) fn states(&self) -> &[State] {
        &self.states
    }

    /// Number of control services that serve.
    pub(crate) fn serving(&self) -> usize {
        self.states.iter().filter(|state| **state == State::Serving).count()
    }

    /// Sets the state of one control service. Returns true if it changed.
    pub(super) fn set_state(&mut self, member: usize, state: State) -> bool {
        std::mem::replace(&mut self.states[member], state) != state
    }

    /// Sets the control service in use.
    pub(super) fn move_to(&mut self, member: usize) {
        self.current = member;
    }
}
