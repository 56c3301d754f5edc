//! The compiled table: what is routed now, and what changes when names are touched.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use portico_machinery::pool::Pool;
use portico_machinery::resolve::CaBundle;
use portico_machinery::route::Backend;

use crate::compiler::{Compiled, compile};
use crate::entry::{Entry, EntryKey};
use crate::{Index, Settings};
use portico_machinery::resolve::Touched;

/// Published changes in the order in which a facade may apply them: bundles come before the routes that name them, and
/// go after them. `None` is a tombstone.
pub type Changes = Vec<(EntryKey, Option<Entry>)>;

/// Routes by name, and how many of them name each bundle.
#[derive(Debug, Default)]
pub struct Table {
    routes: BTreeMap<Arc<str>, Compiled>,
    bundles: HashMap<Arc<str>, (CaBundle, usize)>,
    backends: Pool<Backend>,
}

impl Table {
    /// Compiles the touched names again and answers what that changes for facades.
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
        // A bundle that the last route dropped and a later one took up again in the same pass stays.
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

    /// One route.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Compiled> {
        self.routes.get(name)
    }

    /// All routes, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Compiled> {
        self.routes.values()
    }
}
