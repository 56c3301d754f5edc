//! Decision table for the APIServices that this server manages (upstream's table 5.2). Pure.

use portico_machinery::GroupVersion;
use portico_machinery::resolve::ApiServiceFacts;

/// Management mode of an APIService.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedMode {
    /// Corrected once per start of the process: label `onstart`.
    OnStart,
    /// Corrected after every change: label `true`.
    Always,
}

impl ManagedMode {
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
pub struct DesiredApiService {
    /// Group and version that the APIService registers.
    pub group_version: GroupVersion,
    /// `spec.groupPriorityMinimum`
    pub group_priority_minimum: i32,
    /// `spec.versionPriority`
    pub version_priority: i32,
    pub mode: ManagedMode,
}

impl DesiredApiService {
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
pub struct CurrentApiService {
    /// Management mode in the label; `None` if the object is not managed.
    pub managed: Option<ManagedMode>,
    /// True if the spec is the desired one.
    pub spec_matches: bool,
}

/// State that the controller remembers of an APIService.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncState {
    /// True if the object existed when the informers had synced.
    pub present_at_start: bool,
    /// True if the object has been reconciled without an error.
    pub synced: bool,
}

/// Change that makes an APIService match the desired one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncAction {
    Skip,
    Create,
    /// Replace the spec.
    Update,
    Delete,
}

/// Evaluates the table in upstream's order.
#[must_use]
pub fn decide(
    current: Option<CurrentApiService>,
    desired: Option<ManagedMode>,
    memory: SyncState,
) -> SyncAction {
    let is_synced_on_start = desired == Some(ManagedMode::OnStart) && memory.synced;
    let (current, managed) = match (current, desired) {
        (None, None) => return SyncAction::Skip,
        _ if is_synced_on_start => return SyncAction::Skip,
        (None, Some(_)) => return SyncAction::Create,
        (Some(current), _) => match current.managed {
            None => return SyncAction::Skip,
            Some(managed) => (current, managed),
        },
    };
    if managed == ManagedMode::OnStart && (!memory.present_at_start || memory.synced) {
        return SyncAction::Skip;
    }
    match desired {
        None => SyncAction::Delete,
        Some(_) if current.spec_matches => SyncAction::Skip,
        Some(_) => SyncAction::Update,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: SyncState = SyncState { present_at_start: false, synced: false };
    const OLD: SyncState = SyncState { present_at_start: true, synced: false };

    fn object(managed: Option<ManagedMode>, spec_matches: bool) -> Option<CurrentApiService> {
        Some(CurrentApiService { managed, spec_matches })
    }

    #[test]
    fn every_cell_of_the_table() {
        use SyncAction::{Create, Delete, Skip, Update};
        let (on_start, always) = (Some(ManagedMode::OnStart), Some(ManagedMode::Always));
        let rows = [
            (None, NEW, [Skip, Create, Create], [Skip, Skip, Create]),
            (object(None, false), OLD, [Skip; 3], [Skip; 3]),
            (object(on_start, false), NEW, [Skip; 3], [Skip; 3]),
            (object(on_start, false), OLD, [Delete, Update, Update], [Skip; 3]),
            (object(always, false), OLD, [Delete, Update, Update], [Delete, Skip, Update]),
            (object(always, false), NEW, [Delete, Update, Update], [Delete, Skip, Update]),
            (object(on_start, true), OLD, [Delete, Skip, Skip], [Skip; 3]),
            (object(always, true), OLD, [Delete, Skip, Skip], [Delete, Skip, Skip]),
        ];
        for (current, memory, first, later) in rows {
            let synced = SyncState { synced: true, ..memory };
            for (i, desired) in [None, on_start, always].into_iter().enumerate() {
                assert_eq!(decide(current, desired, memory), first[i], "{current:?} {desired:?} {memory:?}");
                assert_eq!(decide(current, desired, synced), later[i], "{current:?} {desired:?} {synced:?}");
            }
        }
    }

    #[test]
    fn only_the_two_upstream_label_values_mean_managed() {
        assert_eq!(ManagedMode::parse(Some("onstart")), Some(ManagedMode::OnStart));
        assert_eq!(ManagedMode::parse(Some("true")), Some(ManagedMode::Always));
        assert_eq!((ManagedMode::parse(Some("True")), ManagedMode::parse(None)), (None, None));
    }
}
