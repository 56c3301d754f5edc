//! Table of compiled routes, updated incrementally.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use portico_machinery::pool::Pool;
use portico_machinery::resolve::CaBundle;
use portico_machinery::route::Backend;

use crate::compiler::{CompiledRoute, compile};
use crate::entry::{TableEntry, TableEntryKey};
use crate::{RouteIndex, Settings};
use portico_machinery::resolve::AffectedApiServices;

/// Published changes in an order in which facades may apply them: added bundles before the routes that refer to them, removed
/// bundles after them. `None` is a tombstone.
pub type TableChanges = Vec<(TableEntryKey, Option<TableEntry>)>;

/// Routes by name, and the number of references to each bundle.
#[derive(Debug, Default)]
pub struct Table {
    routes: BTreeMap<Arc<str>, CompiledRoute>,
    bundles: HashMap<Arc<str>, (CaBundle, usize)>,
    backends: Pool<Backend>,
}

impl Table {
    /// Recompiles the affected names and returns the changes for facades.
    pub fn recompile(
        &mut self,
        index: &RouteIndex,
        settings: &Settings,
        affected: &AffectedApiServices,
        revision: i64,
    ) -> TableChanges {
        let (mut routes, mut added_bundles, mut removed_bundles) =
            (TableChanges::new(), TableChanges::new(), TableChanges::new());
        for name in affected {
            let mut compiled = compile(index, settings, name, revision);
            if let (Some(before), Some(after)) = (self.routes.get(name), &compiled)
                && before.equals_except_revision(after)
            {
                continue;
            }
            if let Some(route) = compiled.as_mut().and_then(|after| Arc::get_mut(&mut after.route)) {
                route.share_backend(&mut self.backends);
            }
            if let Some(bundle) =
                compiled.as_ref().filter(|c| c.is_published()).and_then(|c| c.bundle.as_ref())
            {
                self.add_bundle_reference(bundle, &mut added_bundles);
            }
            let published =
                compiled.as_ref().filter(|c| c.is_published()).map(|c| TableEntry::Route(c.route.clone()));
            let replaced = match compiled {
                Some(after) => self.routes.insert(name.clone(), after),
                None => self.routes.remove(name),
            };
            let was_published = replaced.as_ref().is_some_and(CompiledRoute::is_published);
            if let Some(bundle) = replaced.filter(CompiledRoute::is_published).and_then(|c| c.bundle) {
                self.remove_bundle_reference(&bundle, &mut removed_bundles);
            }
            if was_published || published.is_some() {
                routes.push((TableEntryKey::Route(name.clone()), published));
            }
        }
        // Keeps a bundle that lost its last reference and got a new one in the same pass.
        removed_bundles.retain(
            |(key, _)| !matches!(key, TableEntryKey::Bundle(hash) if self.bundles.contains_key(hash)),
        );
        added_bundles.into_iter().chain(routes).chain(removed_bundles).collect()
    }

    fn add_bundle_reference(&mut self, bundle: &CaBundle, added: &mut TableChanges) {
        let (_, count) = self.bundles.entry(bundle.hash.clone()).or_insert_with(|| {
            added
                .push((TableEntryKey::Bundle(bundle.hash.clone()), Some(TableEntry::Bundle(bundle.clone()))));
            (bundle.clone(), 0)
        });
        *count += 1;
    }

    fn remove_bundle_reference(&mut self, bundle: &CaBundle, removed: &mut TableChanges) {
        if let Some((_, count)) = self.bundles.get_mut(&bundle.hash) {
            *count -= 1;
            if *count == 0 {
                self.bundles.remove(&bundle.hash);
                removed.push((TableEntryKey::Bundle(bundle.hash.clone()), None));
            }
        }
    }

    /// Route with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CompiledRoute> {
        self.routes.get(name)
    }

    /// All routes, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &CompiledRoute> {
        self.routes.values()
    }
}
