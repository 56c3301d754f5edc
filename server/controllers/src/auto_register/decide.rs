//! Decision table for the APIServices that this server manages (upstream's table 5.2). Pure.

use portico_machinery::GroupVersion;
use portico_machinery::resolve::ApiServiceFacts;

/// Management mode of an APIService.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Corrected once per start of the process: label `onstart`.
    OnStart,
    /// Corrected after every change: label `true`.
    Always,
}

impl Mode {
    /// Returns the value of the label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::OnStart => "onstart",
            Self::Always => "true",
        }
    }

    /// Parses the value of the label. Returns `None` for any other value: the object is not managed.
    #[must_use]
    pub fn parse(label: Option<&str>) -> Option<Self> {
        match label? {
            "onstart" => Some(Self::OnStart),
            "true" => Some(Self::Always),
            _ => None,
        }
    }
}

/// An APIService that should exist, always a local one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// Group and version that the APIService registers.
    pub group_version: GroupVersion,
    /// `spec.groupPriorityMinimum`
    pub group_priority_minimum: i32,
    /// `spec.versionPriority`
    pub version_priority: i32,
    pub mode: Mode,
}

impl Desired {
    /// Returns true if the spec of the object is the desired one.
    #[must_use]
    pub fn is_spec_of(&self, facts: &ApiServiceFacts) -> bool {
        facts.backend.is_none()
            && facts.group_version == self.group_version
            && facts.group_priority_minimum == self.group_priority_minimum
            && facts.version_priority == self.version_priority
    }
}

/// Current state of an APIService.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Management mode in the label; `None` if the object is not managed.
    pub managed: Option<Mode>,
    /// True if the spec is the desired one.
    pub spec_matches: bool,
}

/// State that the controller remembers of an APIService.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// True if the object existed when the informers had synced.
    pub present_at_start: bool,
    /// True if the object has been reconciled without an error.
    pub synced: bool,
}

/// Change that makes an APIService match the desired one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Create,
    /// Replace the spec.
    Update,
    Delete,
}

/// Evaluates the table in upstream's order.
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
