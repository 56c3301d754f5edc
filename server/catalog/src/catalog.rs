//! The room's front: built-in fragments at once and in time, routes in, entries and documents out.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use portico_kinds::{KindInfo, Kinds};
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupVersion;
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

    /// Publishes the discovery of the built-in kinds, and starts the background work in `tasks`: OpenAPI of the
    /// built-in kinds once `ready` is over (start-up does not pay for it), and fetching from backends.
    pub fn run(&self, kinds: &Kinds, tasks: &TaskSet, ready: impl Future<Output = ()> + Send + 'static) {
        let fragments = builtin(kinds);
        self.entries.set(fragments.iter().map(|f| self.discovery(f)));
        let this = self.clone();
        tasks.spawn_until_cancelled("catalog_openapi_builtin", async move {
            ready.await;
            for fragment in fragments {
                this.describe(&fragment);
                // Writing a document is work without waiting: others get their turn in between.
                tokio::task::yield_now().await;
            }
        });
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
