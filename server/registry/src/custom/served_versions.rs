//! Served versions of a definition, each compiled into a kind on first use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use portico_kit::lifecycle::Signal;
use portico_store::Record;

use super::CustomVersion;
use super::definition_facts::{DefinitionFacts, DefinitionVersion};
use super::kind_defaults::KindDefaults;
use super::kind_info;
use super::schemas::Schemas;
use super::webhook_health::{FailingWebhook, Health};
use crate::served_resource::ServedResource;

/// All versions of a definition, valid until its spec or names change.
pub(crate) struct ServedVersions {
    facts: Arc<DefinitionFacts>,
    /// Revision of the definition's last change that affects serving.
    since_revision: i64,
    kind_defaults: Arc<KindDefaults>,
    shared: SharedState,
    /// Compiled versions; `None` if the server has no types of metadata.
    versions: Box<[OnceLock<Option<Arc<ServedResource>>>]>,
    /// True if a version was used since the last check.
    used: AtomicBool,
    /// Signaled when a newer state replaces these versions, which ends watches.
    pub(crate) superseded: Signal,
}

/// State that all versions of a definition share.
pub(super) struct SharedState {
    pub(super) schemas: Arc<Schemas>,
    pub(super) health: Arc<Health>,
}

impl ServedVersions {
    pub(super) fn new(
        facts: &Arc<DefinitionFacts>,
        record: &Arc<Record>,
        kind_defaults: &Arc<KindDefaults>,
    ) -> Self {
        Self {
            facts: Arc::clone(facts),
            since_revision: record.revision,
            kind_defaults: Arc::clone(kind_defaults),
            shared: SharedState {
                schemas: Arc::new(Schemas::new(facts, record, kind_defaults)),
                health: Arc::default(),
            },
            versions: facts.versions().iter().map(|_| OnceLock::new()).collect(),
            used: AtomicBool::new(false),
            superseded: Signal::new("custom-resource-superseded"),
        }
    }

    /// Returns a copy without compiled versions if none was used since the last call; `None` otherwise. The health of the webhook
    /// is kept.
    pub(super) fn reset_if_unused(&self) -> Option<Self> {
        let is_unused = !self.used.swap(false, Ordering::Relaxed);
        let has_compiled = self.versions.iter().any(|version| version.get().is_some());
        (is_unused && has_compiled).then(|| {
            let empty = Self::new(&self.facts, &self.shared.schemas.record(), &self.kind_defaults);
            let shared = SharedState { health: Arc::clone(&self.shared.health), ..empty.shared };
            Self { since_revision: self.since_revision, superseded: self.superseded.clone(), shared, ..empty }
        })
    }

    /// Replaces the record by that of a newer state with the same served versions, to release the older one.
    pub(super) fn update_record(&self, record: &Arc<Record>) {
        self.shared.schemas.update_record(record);
    }

    /// Last failure of the conversion webhook, if its last call failed.
    pub(crate) fn webhook_failure(&self) -> Option<FailingWebhook> {
        self.shared.health.last_failure()
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
    pub(crate) fn served_versions(&self) -> Vec<Arc<ServedResource>> {
        let versions = self.facts.versions().iter().filter(|version| version.served);
        versions.filter_map(|version| self.version(&version.name).cloned()).collect()
    }

    fn find(&self, matches: impl Fn(&DefinitionVersion) -> bool) -> Option<&Arc<ServedResource>> {
        let index = self.facts.versions().iter().position(matches)?;
        self.used.store(true, Ordering::Relaxed);
        let version =
            self.versions[index].get_or_init(|| self.compile(&self.facts.versions()[index]).map(Arc::new));
        version.as_ref()
    }

    fn compile(&self, version: &DefinitionVersion) -> Option<ServedResource> {
        let custom = CustomVersion::new(
            &self.facts,
            version,
            self.since_revision,
            &self.shared,
            self.superseded.clone(),
        )?;
        let info = kind_info::new_kind_info(&self.facts, version, custom.schema.clone(), &self.kind_defaults);
        Some(ServedResource::of_custom(info, version.subresources.scale.as_ref(), custom))
    }
}

#[cfg(test)]
mod tests {
    use portico_kinds::Kinds;
    use portico_store::{Indexed, Key, Resource, Value};

    use super::*;

    #[test]
    fn unused_versions_are_dropped_but_the_health_of_the_webhook_is_kept() {
        let json =
            br#"{"metadata":{"name":"n.g"},"spec":{"group":"g","versions":[{"name":"v1","served":true}]}}"#;
        let (key, value) =
            (Key::new(&Resource::new("", ""), "", "n.g"), Value::new(json.as_slice(), Indexed::default()));
        let record = Arc::new(Record { key, revision: 7, value });
        let (facts, kind_defaults) =
            (DefinitionFacts::read(json).unwrap(), KindDefaults::from_kinds(&Kinds::builtin().unwrap()));
        let versions = ServedVersions::new(&Arc::new(facts), &record, &kind_defaults);
        assert!(versions.reset_if_unused().is_none(), "no version is compiled yet");
        versions.version("v1");
        let failing = FailingWebhook {
            definition: "n.g".into(),
            group: "g".into(),
            since: "today".into(),
            message: "refused".into(),
        };
        versions.shared.health.record(Some(failing.clone()));
        assert!(versions.reset_if_unused().is_none(), "a version was used since the last check");
        let empty = versions.reset_if_unused().unwrap();
        assert_eq!((empty.webhook_failure(), empty.since_revision), (Some(failing.clone()), 7));
        let later = FailingWebhook { since: "tomorrow".into(), ..failing.clone() };
        empty.shared.health.record(Some(later));
        assert_eq!(versions.webhook_failure(), Some(failing), "the first failure is recorded");
        empty.shared.health.record(None);
        assert!(empty.webhook_failure().is_none() && empty.reset_if_unused().is_none());
    }
}
