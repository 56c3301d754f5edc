//! Rules for history that is stored longer than watches need it: the resources and the retention. Plain values.
//!
//! The log deletes old entries of all resources by age. Entries of these resources move to the archive in the same transaction.

use std::time::Duration;

use portico_machinery::GroupResource;

/// Resources in the archive, and the retention of their states after they are superseded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRules {
    by_resource: Vec<(GroupResource, Duration)>,
    default_retention: Option<Duration>,
}

impl ArchiveRules {
    /// Sets the retention of a storage resource, replacing an earlier rule. Zero disables the archive for it.
    pub fn set_retention(&mut self, resource: GroupResource, retention: Duration) {
        self.by_resource.retain(|(other, _)| *other != resource);
        self.by_resource.push((resource, retention));
    }

    /// Sets the retention of all other resources.
    pub fn set_default_retention(&mut self, retention: Duration) {
        self.default_retention = Some(retention);
    }

    /// Returns the retention of this resource; `None` if its states are not archived.
    #[must_use]
    pub fn retention(&self, resource: &GroupResource) -> Option<Duration> {
        let rule =
            self.by_resource.iter().find(|(other, _)| other == resource).map(|(_, retention)| *retention);
        rule.or(self.default_retention).filter(|retention| !retention.is_zero())
    }

    /// True if no resource is archived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.longest().is_zero()
    }

    /// Returns the longest retention of any resource.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.by_resource
            .iter()
            .map(|(_, retention)| *retention)
            .chain(self.default_retention)
            .max()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_resource_overrides_the_default() {
        let mut rules = ArchiveRules::default();
        let (maps, events) = (GroupResource::new("", "configmaps"), GroupResource::new("", "events"));
        assert!(rules.is_empty());
        rules.set_retention(maps.clone(), Duration::from_secs(5));
        assert_eq!((rules.retention(&maps), rules.retention(&events)), (Some(Duration::from_secs(5)), None));
        rules.set_default_retention(Duration::from_secs(9));
        rules.set_retention(events.clone(), Duration::ZERO);
        rules.set_retention(maps.clone(), Duration::from_secs(7));
        assert_eq!((rules.retention(&maps), rules.retention(&events)), (Some(Duration::from_secs(7)), None));
        assert_eq!(rules.retention(&GroupResource::new("", "nodes")), Some(Duration::from_secs(9)));
        assert_eq!(rules.longest(), Duration::from_secs(9));
    }
}
