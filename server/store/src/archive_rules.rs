//! Rules for history that is stored longer than watches need it: the resources and the retention. Plain values.
//!
//! The log deletes old entries of all resources by age. Entries of these resources move to the archive in the same transaction.

use std::time::Duration;

use portico_machinery::GroupResource;

/// Resources in the archive, and the retention of their states after they are superseded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRules {
    by_resource: Vec<(GroupResource, Duration)>,
    others: Option<Duration>,
}

impl ArchiveRules {
    /// Sets the retention of a storage resource, replacing an earlier rule. Zero disables the archive for it.
    pub fn keep(&mut self, resource: GroupResource, kept: Duration) {
        self.by_resource.retain(|(other, _)| *other != resource);
        self.by_resource.push((resource, kept));
    }

    /// Sets the retention of all other resources.
    pub fn keep_others(&mut self, kept: Duration) {
        self.others = Some(kept);
    }

    /// Returns the retention of this resource; `None` if its states are not archived.
    #[must_use]
    pub fn of(&self, resource: &GroupResource) -> Option<Duration> {
        let own = self.by_resource.iter().find(|(other, _)| other == resource).map(|(_, kept)| *kept);
        own.or(self.others).filter(|kept| !kept.is_zero())
    }

    /// True if no resource is archived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.longest().is_zero()
    }

    /// Returns the longest retention of any resource.
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
