//! Entry point of the crate: receives routes and definitions, and publishes entries and documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use portico_kinds::{KindInfo, Kinds};
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupVersion;
use portico_machinery::digest;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::route::Route;

use crate::custom::{Definition, Definitions, Group};
use crate::documents::Documents;
use crate::entries::{Entries, ServedReader};
use crate::local::{Fragment, new_fragment};
use crate::remote::{Fetch, Remote};

/// Properties of this server in documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Kubernetes version in OpenAPI's `info`, such as `1.36`.
    pub version: String,
    /// Maximum total size of cached OpenAPI documents, compressed, in bytes. The least recently used are evicted.
    pub openapi_cache_bytes: usize,
}

/// Entries and documents of everything that is served. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    settings: Settings,
    kinds: Arc<Kinds>,
    entries: Entries,
    remote: Remote,
    custom: Arc<Mutex<Definitions>>,
}

impl Catalog {
    /// Creates an empty catalog of these built-in kinds, which reaches backends through `fetch`.
    #[must_use]
    pub fn new(settings: Settings, kinds: Arc<Kinds>, fetch: Arc<dyn Fetch>) -> Self {
        let entries = Entries::new(Documents::new(settings.openapi_cache_bytes));
        let remote = Remote::new(fetch, entries.clone());
        Self { settings, kinds, remote, entries, custom: Arc::default() }
    }

    /// Returns the store of the documents that entries name.
    #[must_use]
    pub fn documents(&self) -> Documents {
        self.entries.documents().clone()
    }

    /// Returns a reader of entries.
    #[must_use]
    pub fn subscribe(&self) -> ServedReader {
        self.entries.reader()
    }

    /// Publishes the built-in kinds, and starts fetching from backends in `tasks`. OpenAPI documents are only named at this
    /// point, and generated on request.
    pub fn run(&self, tasks: &TaskSet) {
        self.entries
            .set(builtin_fragments(&self.kinds).into_iter().map(|f| self.offer_fragment(&Arc::new(f))));
        self.remote.run(tasks);
    }

    /// Applies changes of routes by APIService name; `None` for removed ones. Never blocks.
    pub fn set_routes(&self, changes: impl IntoIterator<Item = (String, Option<Arc<Route>>)>) {
        self.remote.set_routes(changes);
    }

    /// Applies changes of definitions by name; `None` for removed ones. Never blocks and generates no document.
    pub fn set_definitions(&self, changes: impl IntoIterator<Item = (String, Option<Definition>)>) {
        let mut custom = self.custom.lock();
        self.publish(&mut custom, changes);
    }

    /// Replaces all definitions; those that are missing are removed.
    pub fn replace_definitions(&self, definitions: impl IntoIterator<Item = Definition>) {
        let mut custom = self.custom.lock();
        let all: Vec<Definition> = definitions.into_iter().collect();
        let names: BTreeSet<&str> = all.iter().map(Definition::name).collect();
        let removed = custom.names().filter(|name| !names.contains(name.as_str())).cloned();
        let removed: Vec<_> = removed.map(|name| (name, None)).collect();
        let present = all.into_iter().map(|definition| (definition.name().to_owned(), Some(definition)));
        self.publish(&mut custom, removed.into_iter().chain(present));
    }

    fn publish(
        &self,
        custom: &mut Definitions,
        changes: impl IntoIterator<Item = (String, Option<Definition>)>,
    ) {
        let changed = custom.change(self.kinds.types(), changes);
        self.entries.set(changed.into_iter().map(|(gv, group)| {
            let entry = new_entry(&gv, Source::Crd);
            (entry.key(), group.map(|group| self.offer_group(entry, Arc::new(group))))
        }));
    }

    /// Offers the documents of a group version of custom resources, named by a digest of their inputs.
    fn offer_group(&self, entry: ServedVersion, group: Arc<Group>) -> ServedVersion {
        let documents = self.entries.documents();
        let offer = |name: String, make: fn(&Group) -> Vec<u8>| {
            let group = Arc::clone(&group);
            documents.offer(name, Arc::new(move || make(&group)))
        };
        let fingerprint = self.kinds.fingerprint();
        ServedVersion {
            discovery: offer(group.discovery_name("discovery"), Group::discovery),
            resource_list: offer(group.discovery_name("resources"), Group::resource_list),
            openapi_v2: offer(group.openapi_name("v2", fingerprint), Group::openapi_v2),
            openapi_v3: offer(group.openapi_name("v3", fingerprint), Group::openapi_v3),
            ..entry
        }
    }

    fn put_discovery(&self, fragment: &Fragment) -> (String, Option<ServedVersion>) {
        let documents = self.entries.documents();
        let entry = ServedVersion {
            discovery: documents.put(&fragment.discovery()),
            resource_list: documents.put(&fragment.resource_list()),
            ..new_entry(&fragment.group_version, Source::Builtin)
        };
        (entry.key(), Some(entry))
    }

    /// Offers the documents of a built-in fragment, named by a digest of their inputs.
    fn offer_fragment(&self, fragment: &Arc<Fragment>) -> (String, Option<ServedVersion>) {
        let (key, entry) = self.put_discovery(fragment);
        let documents = self.entries.documents();
        let version = self.settings.version.clone();
        let name = |dialect: &str| {
            digest::id_of_inputs(&[
                dialect.as_bytes(),
                version.as_bytes(),
                &fragment.openapi_inputs(self.kinds.fingerprint()),
            ])
        };
        let (v2, v3) = (fragment.clone(), fragment.clone());
        let (v2_name, v3_name) = (name("v2"), name("v3"));
        let with_documents = entry.map(|entry| ServedVersion {
            openapi_v2: documents.offer(v2_name, Arc::new(move || v2.openapi_v2())),
            openapi_v3: documents.offer(v3_name, Arc::new(move || v3.openapi_v3(&version))),
            ..entry
        });
        (key, with_documents)
    }
}

fn new_entry(gv: &GroupVersion, source: Source) -> ServedVersion {
    ServedVersion { group: gv.group.clone(), version: gv.version.clone(), source, ..ServedVersion::default() }
}

/// Returns one fragment per group version that serves kinds.
fn builtin_fragments(kinds: &Kinds) -> Vec<Fragment> {
    let mut groups: BTreeMap<GroupVersion, Vec<Arc<KindInfo>>> = BTreeMap::new();
    for kind in kinds.iter() {
        groups.entry(kind.group_version()).or_default().push(kind.clone());
    }
    let fragment = |(gv, members)| new_fragment(gv, members, kinds.types().clone());
    groups.into_iter().map(fragment).collect()
}
