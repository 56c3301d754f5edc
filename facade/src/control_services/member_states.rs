//! The control service in use and the states of all, as one value, so that readers never see a part of a change.

use super::member::MemberState;

/// States of all control services, and the one in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberStates {
    current: usize,
    states: Vec<MemberState>,
}

impl MemberStates {
    /// Uses the first of `members` control services; all states are unknown.
    pub(super) fn new(members: usize) -> Self {
        Self { current: 0, states: vec![MemberState::Unknown; members] }
    }

    /// Index of the control service in use.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// State of one control service.
    pub(crate) fn state(&self, member: usize) -> MemberState {
        self.states[member]
    }

    /// States of all control services.
    pub(super) fn states(&self) -> &[MemberState] {
        &self.states
    }

    /// Number of control services that serve.
    pub(crate) fn serving_count(&self) -> usize {
        self.states.iter().filter(|state| **state == MemberState::Serving).count()
    }

    /// Sets the state of one control service. Returns true if it changed.
    pub(super) fn set_state(&mut self, member: usize, state: MemberState) -> bool {
        std::mem::replace(&mut self.states[member], state) != state
    }

    /// Sets the control service in use.
    pub(super) fn set_current(&mut self, member: usize) {
        self.current = member;
    }
}
