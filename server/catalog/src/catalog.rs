//! The room's front: built-in fragments at once and in time, routes in, entries and documents out.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_kinds::{KindInfo, Kinds};
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupVersion;
use portico_machinery::digest;
use portico_machinery::discovery::{Served, Source};
use portico_machinery::route::Route;

use crate::documents::Documents;
use crate::entries::{Entries, ServedReader};
use crate::local::{Fragment, fragment};
use crate::remote::{Fetch, Remote};

/// What documents say of this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The Kubernetes version in OpenAPI's `info`, `1.36`.
    pub version: String,
}

/// Everything that is served, as entries and documents. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    settings: Settings,
    entries: Entries,
    remote: Remote,
}

impl Catalog {
    /// An empty catalogue that will reach backends through `fetch`.
    #[must_use]
    pub fn new(settings: Settings, fetch: Arc<dyn Fetch>) -> Self {
        let entries = Entries::new(Documents::default());
        Self { settings, remote: Remote::new(fetch, entries.clone()), entries }
    }

    /// The documents that entries name.
    #[must_use]
    pub fn documents(&self) -> Documents {
        self.entries.documents().clone()
    }

    /// A reader of entries.
    #[must_use]
    pub fn subscribe(&self) -> ServedReader {
        self.entries.reader()
    }

    /// Publishes the built-in kinds, and starts the background work in `tasks`: fetching from backends. OpenAPI
    /// documents are only named here: they are made when somebody asks.
    pub fn run(&self, kinds: &Kinds, tasks: &TaskSet) {
        self.entries.set(builtin(kinds).into_iter().map(|f| self.offer(kinds, &Arc::new(f))));
        self.remote.run(tasks);
    }

    /// Takes routes by APIService name: new, changed or (nothing) gone. Never waits.
    pub fn routes(&self, changes: impl IntoIterator<Item = (String, Option<Arc<Route>>)>) {
        self.remote.routes(changes);
    }

    /// Publishes a fragment with its OpenAPI: a group version of custom resources that is new or changed.
    pub fn publish(&self, fragment: &Fragment) {
        self.describe(fragment);
    }

    /// Takes back what was published of a group version.
    pub fn withdraw(&self, group_version: &GroupVersion, source: Source) {
        self.entries.set([(named(group_version, source).key(), None)]);
    }

    fn discovery(&self, fragment: &Fragment) -> (String, Option<Served>) {
        let documents = self.entries.documents();
        let served = Served {
            discovery: documents.put(&fragment.discovery()),
            resource_list: documents.put(&fragment.resource_list()),
            ..named(&fragment.group_version, fragment.source)
        };
        (served.key(), Some(served))
    }

    /// A built-in fragment: its documents go by what they are made of.
    fn offer(&self, kinds: &Kinds, fragment: &Arc<Fragment>) -> (String, Option<Served>) {
        let (key, served) = self.discovery(fragment);
        let documents = self.entries.documents();
        let version = self.settings.version.clone();
        let name = |dialect: &str| {
            digest::made_of(&[dialect.as_bytes(), version.as_bytes(), &fragment.made_of(kinds.fingerprint())])
        };
        let (v2, v3) = (fragment.clone(), fragment.clone());
        let (v2_name, v3_name) = (name("v2"), name("v3"));
        let named = served.map(|served| Served {
            openapi_v2: documents.offer(v2_name, Arc::new(move || v2.openapi_v2())),
            openapi_v3: documents.offer(v3_name, Arc::new(move || v3.openapi_v3(&version))),
            ..served
        });
        (key, named)
    }

    fn describe(&self, fragment: &Fragment) {
        let (key, served) = self.discovery(fragment);
        let documents = self.entries.documents();
        let described = served.map(|served| Served {
            openapi_v3: documents.put(&fragment.openapi_v3(&self.settings.version)),
            openapi_v2: documents.put(&fragment.openapi_v2()),
            ..served
        });
        self.entries.set([(key, described)]);
    }
}

fn named(gv: &GroupVersion, source: Source) -> Served {
    Served { group: gv.group.clone(), version: gv.version.clone(), source, ..Served::default() }
}

/// One fragment per group version that serves kinds.
fn builtin(kinds: &Kinds) -> Vec<Fragment> {
    let mut groups: BTreeMap<GroupVersion, Vec<Arc<KindInfo>>> = BTreeMap::new();
    for kind in kinds.iter() {
        groups.entry(kind.group_version()).or_default().push(kind.clone());
    }
    let fragment = |(gv, members)| fragment(gv, Source::Builtin, members, kinds.types().clone());
    groups.into_iter().map(fragment).collect()
}
