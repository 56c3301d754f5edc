//! Packs the endpoints of one set of ports into slices with few writes (`Reconciler.reconcileByPortMapping`).

use std::collections::{BTreeMap, BTreeSet};

use super::labels::labels_of;
use crate::service_endpoints::service::Service;
use crate::service_endpoints::slice::{EndpointSet, Slice};

/// Writes of slices, and the numbers of added and removed endpoints.
#[derive(Debug, Default)]
pub(super) struct PackResult {
    pub(super) create: Vec<Slice>,
    pub(super) update: Vec<Slice>,
    pub(super) delete: Vec<Slice>,
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// Slices by name, and the names of unchanged, updated and deleted ones.
struct Packing {
    by_name: BTreeMap<String, Slice>,
    unchanged: BTreeSet<String>,
    update: BTreeSet<String>,
    delete: BTreeSet<String>,
    removed: usize,
}

/// Updates `existing` slices to contain the `desired` endpoints, and creates further slices from `empty` if necessary.
pub(super) fn pack(
    service: &Service,
    existing: Vec<Slice>,
    mut desired: EndpointSet,
    empty: &Slice,
    max: usize,
) -> PackResult {
    let mut packing = keep_desired(service, existing, &mut desired);
    let added = desired.len();
    packing.fill_updated(&mut desired, max);
    let mut create = Vec::new();
    while !desired.is_empty() {
        let name = packing.slice_to_fill(desired.len(), max);
        let mut slice = match name.as_ref().and_then(|name| packing.by_name.get(name)) {
            Some(slice) => slice.clone(),
            None => empty.clone(),
        };
        fill(&mut slice, &mut desired, max);
        match name {
            Some(name) => {
                packing.unchanged.remove(&name);
                packing.update.insert(name.clone());
                packing.by_name.insert(name, slice);
            }
            None => create.push(slice),
        }
    }
    let mut remove_slices = |names: BTreeSet<String>| -> Vec<Slice> {
        names.iter().filter_map(|name| packing.by_name.remove(name)).collect()
    };
    let (update, delete) = (remove_slices(packing.update), remove_slices(packing.delete));
    PackResult { create, update, delete, added, removed: packing.removed }
}

/// Keeps the desired endpoints in each slice, and removes them from `desired`.
fn keep_desired(service: &Service, existing: Vec<Slice>, desired: &mut EndpointSet) -> Packing {
    let mut packing = Packing {
        by_name: BTreeMap::new(),
        unchanged: BTreeSet::new(),
        update: BTreeSet::new(),
        delete: BTreeSet::new(),
        removed: 0,
    };
    for mut slice in existing {
        let name = slice.name.clone();
        let before = slice.endpoints.len();
        let mut is_changed = false;
        let mut kept_endpoints = Vec::with_capacity(before);
        for endpoint in &slice.endpoints {
            if let Some(desired_endpoint) = desired.remove(&endpoint.key()) {
                is_changed |= !desired_endpoint.equals_beyond_key(endpoint);
                kept_endpoints.push(desired_endpoint);
            }
        }
        let labels = labels_of(service, &slice.labels);
        packing.removed += before - kept_endpoints.len();
        let category = match (is_changed || kept_endpoints.len() != before, labels) {
            (true, _) if kept_endpoints.is_empty() => &mut packing.delete,
            (true, (labels, _)) => {
                (slice.endpoints, slice.labels) = (kept_endpoints, labels);
                &mut packing.update
            }
            (false, (labels, true)) => {
                slice.labels = labels;
                &mut packing.update
            }
            (false, _) => &mut packing.unchanged,
        };
        category.insert(name.clone());
        packing.by_name.insert(name, slice);
    }
    packing
}

fn fill(slice: &mut Slice, desired: &mut EndpointSet, max: usize) {
    while slice.endpoints.len() < max
        && let Some((_, endpoint)) = desired.pop_first()
    {
        slice.endpoints.push(endpoint);
    }
}

impl Packing {
    /// Fills slices that are written anyway, the fullest ones first.
    fn fill_updated(&mut self, desired: &mut EndpointSet, max: usize) {
        let length =
            |packing: &Self, name: &String| packing.by_name.get(name).map_or(0, |s| s.endpoints.len());
        let mut names: Vec<String> = self.update.iter().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(length(self, name)));
        for name in names {
            if let Some(slice) = self.by_name.get_mut(&name) {
                fill(slice, desired, max);
            }
        }
    }

    /// Returns the unchanged slice that is closest to full with `count` more endpoints, if any has room for all of them
    /// (`getSliceToFill`).
    fn slice_to_fill(&self, count: usize, max: usize) -> Option<String> {
        if count >= max {
            return None;
        }
        let free_capacity =
            |name: &&String| max.checked_sub(count + self.by_name.get(*name)?.endpoints.len());
        let with_room = self.unchanged.iter().filter_map(|name| Some((free_capacity(&name)?, name)));
        with_room.filter(|(room, _)| *room < max).min().map(|(_, name)| name.clone())
    }
}
