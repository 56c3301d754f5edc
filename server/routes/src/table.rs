//! Table of compiled routes, updated incrementally.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use portico_machinery::pool::Pool;
use portico_machinery::resolve::CaBundle;
use portico_machinery::route::Backend;

use crate::compiler::{Compiled, compile};
use crate::entry::{Entry, EntryKey};
use crate::{Index, Settings};
use portico_machinery::resolve::Touched;

/// Published changes in an order in which facades may apply them: added bundles before the routes that refer to them, removed
/// bundles after them. `None` is a tombstone.
pub type Changes = Vec<(EntryKey, Option<Entry>)>;

/// Routes by name, and the number of references to each bundle.
#[derive(Debug, Default)]
pub struct Table {
    routes: BTreeMap<Arc<str>, Compiled>,
    bundles: HashMap<Arc<str>, (CaBundle, usize)>,
    backends: Pool<Backend>,
}

impl Table {
    /// Recompiles the affected names and returns the changes for facades.
    pub fn recompile(
        &mut self,
        index: &Index,
        settings: &Settings,
        touched: &Touched,
        revision: i64,
    ) -> Changes {
        let (mut routes, mut came, mut left) = (Changes::new(), Changes::new(), Changes::new());
        for name in touched {
            let mut after = compile(index, settings, name, revision);
            if let (Some(before), Some(after)) = (self.routes.get(name), &after)
                && before.same_as(after)
            {
                continue;
            }
            if let Some(route) = after.as_mut().and_then(|after| Arc::get_mut(&mut after.route)) {
                route.share_backend(&mut self.backends);
            }
            if let Some(bundle) = after.as_ref().filter(|c| c.is_published()).and_then(|c| c.bundle.as_ref())
            {
                self.take_bundle(bundle, &mut came);
            }
            let published =
                after.as_ref().filter(|c| c.is_published()).map(|c| Entry::Route(c.route.clone()));
            let before = match after {
                Some(after) => self.routes.insert(name.clone(), after),
                None => self.routes.remove(name),
            };
            let was_published = before.as_ref().is_some_and(Compiled::is_published);
            if let Some(bundle) = before.filter(Compiled::is_published).and_then(|c| c.bundle) {
                self.drop_bundle(&bundle, &mut left);
            }
            if was_published || published.is_some() {
                routes.push((EntryKey::Route(name.clone()), published));
            }
        }
        // Keeps a bundle that lost its last reference and got a new one in the same pass.
        left.retain(|(key, _)| !matches!(key, EntryKey::Bundle(hash) if self.bundles.contains_key(hash)));
        came.into_iter().chain(routes).chain(left).collect()
    }

    fn take_bundle(&mut self, bundle: &CaBundle, came: &mut Changes) {
        let (_, count) = self.bundles.entry(bundle.hash.clone()).or_insert_with(|| {
            came.push((EntryKey::Bundle(bundle.hash.clone()), Some(Entry::Bundle(bundle.clone()))));
            (bundle.clone(), 0)
        });
        *count += 1;
    }

    fn drop_bundle(&mut self, bundle: &CaBundle, left: &mut Changes) {
        if let Some((_, count)) = self.bundles.get_mut(&bundle.hash) {
            *count -= 1;
            if *count == 0 {
                self.bundles.remove(&bundle.hash);
                left.push((EntryKey::Bundle(bundle.hash.clone()), None));
            }
        }
    }

    /// Route with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Compiled> {
        self.routes.get(name)
    }

    /// All routes, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Compiled> {
        self.routes.values()
    }
}
