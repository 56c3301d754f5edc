//! Served versions of a definition, each compiled into a kind on first use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use portico_kit::lifecycle::Signal;
use portico_store::Record;

use super::Custom;
use super::facts::{Facts, Version};
use super::health::{FailingWebhook, Health};
use super::kind;
use super::schemas::Schemas;
use super::shapes::Shapes;
use crate::served::ServedResource;

/// All versions of a definition, valid until its spec or names change.
pub(crate) struct Serving {
    facts: Arc<Facts>,
    /// Revision of the definition's last change that affects serving.
    since: i64,
    shapes: Arc<Shapes>,
    shared: Shared,
    /// Compiled versions; `None` if the server has no types of metadata.
    versions: Box<[OnceLock<Option<Arc<ServedResource>>>]>,
    /// True if a version was used since the last check.
    used: AtomicBool,
    /// Signaled when a newer state replaces these versions, which ends watches.
    pub(crate) over: Signal,
}

/// State that all versions of a definition share.
pub(super) struct Shared {
    pub(super) schemas: Arc<Schemas>,
    pub(super) health: Arc<Health>,
}

impl Serving {
    pub(super) fn new(facts: &Arc<Facts>, record: &Arc<Record>, shapes: &Arc<Shapes>) -> Self {
        Self {
            facts: Arc::clone(facts),
            since: record.revision,
            shapes: Arc::clone(shapes),
            shared: Shared { schemas: Arc::new(Schemas::new(facts, record, shapes)), health: Arc::default() },
            versions: facts.versions().iter().map(|_| OnceLock::new()).collect(),
            used: AtomicBool::new(false),
            over: Signal::new("custom-resource-over"),
        }
    }

    /// Returns a copy without compiled versions if none was used since the last call; `None` otherwise. The health of the webhook
    /// is kept.
    pub(super) fn unless_used(&self) -> Option<Self> {
        let idle = !self.used.swap(false, Ordering::Relaxed);
        let made = self.versions.iter().any(|version| version.get().is_some());
        (idle && made).then(|| {
            let empty = Self::new(&self.facts, &self.shared.schemas.record(), &self.shapes);
            let shared = Shared { health: Arc::clone(&self.shared.health), ..empty.shared };
            Self { since: self.since, over: self.over.clone(), shared, ..empty }
        })
    }

    /// Replaces the record by that of a newer state with the same served versions, to release the older one.
    pub(super) fn renew(&self, record: &Arc<Record>) {
        self.shared.schemas.renew(record);
    }

    /// Last failure of the conversion webhook, if its last call failed.
    pub(crate) fn failing(&self) -> Option<FailingWebhook> {
        self.shared.health.failing()
    }

    /// Version that requests may use.
    pub(crate) fn version(&self, name: &str) -> Option<&Arc<ServedResource>> {
        self.find(|version| version.served && version.name == name)
    }

    /// Version by name, served or not.
    pub(crate) fn any_version(&self, name: &str) -> Option<&Arc<ServedResource>> {
        self.find(|version| version.name == name)
    }

    /// Storage version, which internal callers use.
    pub(crate) fn storage(&self) -> Option<&Arc<ServedResource>> {
        self.find(|version| version.storage)
    }

    /// Versions that requests may use.
    pub(crate) fn served(&self) -> Vec<Arc<ServedResource>> {
        let served = self.facts.versions().iter().filter(|version| version.served);
        served.filter_map(|version| self.version(&version.name).cloned()).collect()
    }

    fn find(&self, is: impl Fn(&Version) -> bool) -> Option<&Arc<ServedResource>> {
        let at = self.facts.versions().iter().position(is)?;
        self.used.store(true, Ordering::Relaxed);
        let made = self.versions[at].get_or_init(|| self.make(&self.facts.versions()[at]).map(Arc::new));
        made.as_ref()
    }

    fn make(&self, version: &Version) -> Option<ServedResource> {
        let custom = Custom::new(&self.facts, version, self.since, &self.shared, self.over.clone())?;
        let info = kind::of(&self.facts, version, custom.own.clone(), &self.shapes);
        Some(ServedResource::of_custom(info, version.subresources.scale.as_ref(), custom))
    }
}

#[cfg(test)]
mod tests {
    use portico_kinds::Kinds;
    use portico_store::{Indexed, Key, Resource, Value};

    use super::*;

    #[test]
    fn what_is_made_goes_when_nobody_asks_but_not_what_is_known_of_the_webhook() {
        let json =
            br#"{"metadata":{"name":"n.g"},"spec":{"group":"g","versions":[{"name":"v1","served":true}]}}"#;
        let (key, value) =
            (Key::new(&Resource::new("", ""), "", "n.g"), Value::new(json.as_slice(), Indexed::default()));
        let record = Arc::new(Record { key, revision: 7, value });
        let (facts, shapes) = (Facts::read(json).unwrap(), Shapes::of(&Kinds::builtin().unwrap()));
        let serving = Serving::new(&Arc::new(facts), &record, &shapes);
        assert!(serving.unless_used().is_none(), "nothing is made of it");
        serving.version("v1");
        let failing = FailingWebhook {
            definition: "n.g".into(),
            group: "g".into(),
            since: "today".into(),
            message: "refused".into(),
        };
        serving.shared.health.note(Some(failing.clone()));
        assert!(serving.unless_used().is_none(), "somebody has asked since the last look");
        let empty = serving.unless_used().unwrap();
        assert_eq!((empty.failing(), empty.since), (Some(failing.clone()), 7));
        let later = FailingWebhook { since: "tomorrow".into(), ..failing.clone() };
        empty.shared.health.note(Some(later));
        assert_eq!(serving.failing(), Some(failing), "it fails since its first failure");
        empty.shared.health.note(None);
        assert!(empty.failing().is_none() && empty.unless_used().is_none());
    }
}
