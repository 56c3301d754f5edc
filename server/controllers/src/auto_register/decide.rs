//! Upstream's table 5.2: what becomes of an APIService that this server manages, pure.

use portico_machinery::GroupVersion;
use portico_machinery::resolve::ApiServiceFacts;

/// How an APIService is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Put right once per start of the process: label `onstart`.
    OnStart,
    /// Put right always: label `true`.
    Always,
}

impl Mode {
    /// The label's value.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::OnStart => "onstart",
            Self::Always => "true",
        }
    }

    /// Any other value means that somebody else manages the object.
    #[must_use]
    pub fn parse(label: Option<&str>) -> Option<Self> {
        match label? {
            "onstart" => Some(Self::OnStart),
            "true" => Some(Self::Always),
            _ => None,
        }
    }
}

/// An APIService that should be there: always a local one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// What it serves.
    pub group_version: GroupVersion,
    /// `spec.groupPriorityMinimum`
    pub group_priority_minimum: i32,
    /// `spec.versionPriority`
    pub version_priority: i32,
    /// How it is kept.
    pub mode: Mode,
}

impl Desired {
    /// Whether the object's spec is what it should be.
    #[must_use]
    pub fn is_spec_of(&self, facts: &ApiServiceFacts) -> bool {
        facts.backend.is_none()
            && facts.group_version == self.group_version
            && facts.group_priority_minimum == self.group_priority_minimum
            && facts.version_priority == self.version_priority
    }
}

/// The object as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// By its label; absent: not ours.
    pub managed: Option<Mode>,
    /// Its spec is the desired one.
    pub spec_matches: bool,
}

/// What this process remembers of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The object was there when this process first looked.
    pub present_at_start: bool,
    /// A pass over it has ended without an error.
    pub synced: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Create the desired object.
    Create,
    /// Replace its spec.
    Update,
    /// Delete it.
    Delete,
}

/// The table, in upstream's order of evaluation.
#[must_use]
pub fn decide(current: Option<Current>, desired: Option<Mode>, memory: Memory) -> Action {
    let once = desired == Some(Mode::OnStart) && memory.synced;
    let (current, managed) = match (current, desired) {
        (None, None) => return Action::Nothing,
        _ if once => return Action::Nothing,
        (None, Some(_)) => return Action::Create,
        (Some(current), _) => match current.managed {
            None => return Action::Nothing,
            Some(managed) => (current, managed),
        },
    };
    if managed == Mode::OnStart && (!memory.present_at_start || memory.synced) {
        return Action::Nothing;
    }
    match desired {
        None => Action::Delete,
        Some(_) if current.spec_matches => Action::Nothing,
        Some(_) => Action::Update,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Memory = Memory { present_at_start: false, synced: false };
    const OLD: Memory = Memory { present_at_start: true, synced: false };

    fn object(managed: Option<Mode>, spec_matches: bool) -> Option<Current> {
        Some(Current { managed, spec_matches })
    }

    #[test]
    fn every_cell_of_the_table() {
        use Action::{Create, Delete, Nothing, Update};
        let (on_start, always) = (Some(Mode::OnStart), Some(Mode::Always));
        let rows = [
            (None, NEW, [Nothing, Create, Create], [Nothing, Nothing, Create]),
            (object(None, false), OLD, [Nothing; 3], [Nothing; 3]),
            (object(on_start, false), NEW, [Nothing; 3], [Nothing; 3]),
            (object(on_start, false), OLD, [Delete, Update, Update], [Nothing; 3]),
            (object(always, false), OLD, [Delete, Update, Update], [Delete, Nothing, Update]),
            (object(always, false), NEW, [Delete, Update, Update], [Delete, Nothing, Update]),
            (object(on_start, true), OLD, [Delete, Nothing, Nothing], [Nothing; 3]),
            (object(always, true), OLD, [Delete, Nothing, Nothing], [Delete, Nothing, Nothing]),
        ];
        for (current, memory, first, later) in rows {
            let synced = Memory { synced: true, ..memory };
            for (i, desired) in [None, on_start, always].into_iter().enumerate() {
                assert_eq!(decide(current, desired, memory), first[i], "{current:?} {desired:?} {memory:?}");
                assert_eq!(decide(current, desired, synced), later[i], "{current:?} {desired:?} {synced:?}");
            }
        }
    }

    #[test]
    fn only_upstreams_two_labels_mean_managed() {
        assert_eq!(Mode::parse(Some("onstart")), Some(Mode::OnStart));
        assert_eq!(Mode::parse(Some("true")), Some(Mode::Always));
        assert_eq!((Mode::parse(Some("True")), Mode::parse(None)), (None, None));
    }
}
