//! History that is kept longer than watches need it: of which resources, and how long. Values only.
//!
//! The log forgets by age of everything; what it forgets of these resources goes to the archive, in the same transaction.

use std::time::Duration;

use portico_machinery::GroupResource;

/// Which resources the archive is for, and how long it keeps each of their states after that was superseded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRules {
    by_resource: Vec<(GroupResource, Duration)>,
    others: Option<Duration>,
}

impl ArchiveRules {
    /// Keeps states of a storage resource so long; a second rule for it counts instead of the first. Zero keeps none.
    pub fn keep(&mut self, resource: GroupResource, kept: Duration) {
        self.by_resource.retain(|(other, _)| *other != resource);
        self.by_resource.push((resource, kept));
    }

    /// Keeps states of all other resources so long.
    pub fn keep_others(&mut self, kept: Duration) {
        self.others = Some(kept);
    }

    /// How long states of this resource are kept; none if they are not.
    #[must_use]
    pub fn of(&self, resource: &GroupResource) -> Option<Duration> {
        let own = self.by_resource.iter().find(|(other, _)| other == resource).map(|(_, kept)| *kept);
        own.or(self.others).filter(|kept| !kept.is_zero())
    }

    /// Whether no states of any resource are kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.longest().is_zero()
    }

    /// How long the states are kept that are kept longest.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.by_resource.iter().map(|(_, kept)| *kept).chain(self.others).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_resource_counts_before_the_one_for_all_others() {
        let mut rules = ArchiveRules::default();
        let (maps, events) = (GroupResource::new("", "configmaps"), GroupResource::new("", "events"));
        assert!(rules.is_empty());
        rules.keep(maps.clone(), Duration::from_secs(5));
        assert_eq!((rules.of(&maps), rules.of(&events)), (Some(Duration::from_secs(5)), None));
        rules.keep_others(Duration::from_secs(9));
        rules.keep(events.clone(), Duration::ZERO);
        rules.keep(maps.clone(), Duration::from_secs(7));
        assert_eq!((rules.of(&maps), rules.of(&events)), (Some(Duration::from_secs(7)), None));
        assert_eq!(rules.of(&GroupResource::new("", "nodes")), Some(Duration::from_secs(9)));
        assert_eq!(rules.longest(), Duration::from_secs(9));
    }
}
