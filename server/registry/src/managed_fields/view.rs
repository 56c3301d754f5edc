//! Ownership of fields in a view: copies entries of the parent to the view, and back after a write.

use portico_machinery::Object;
use portico_schema::apply::OwnedFields;
use portico_schema::fields::FieldSet;
use portico_schema::managed::{ManagedFields, Manager, Operation};

use crate::views::ViewTarget;

/// Field with different paths: one in each version of the parent, and one in the view.
pub(crate) struct SharedField<'a> {
    /// Written version of the parent, and the field in it.
    parent: (&'a str, FieldSet),
    /// Other versions of the parent; `None` for a version without the view.
    others: Vec<(String, Option<FieldSet>)>,
    view: (&'a str, FieldSet),
}

impl<'a> SharedField<'a> {
    /// Field that a view shares with its parent.
    pub(crate) fn for_target(target: ViewTarget<'a>) -> Self {
        let (in_parent, in_view) = target.served_view.field();
        let others = target.parent.custom.iter().flat_map(|custom| custom.scales());
        Self {
            parent: (&target.parent.api_version, set(in_parent)),
            others: others.map(|(version, path)| (version, path.map(set))).collect(),
            view: (&target.served_view.served_resource.api_version, set(in_view)),
        }
    }

    /// Copies the entries of the parent that own the field to a view.
    pub(crate) fn copy_to_view(&self, parent: &Object, view: &mut Object) {
        let parent = ManagedFields::read(parent).unwrap_or_default();
        let mut view_entries = ManagedFields::default();
        for (manager, owned) in parent.owners.iter().filter(|(_, owned)| self.owns(owned)) {
            let manager_in_version = in_version(manager, self.view.0);
            if let Some(time) = parent.times.get(manager) {
                view_entries.times.insert(manager_in_version.clone(), time.clone());
            }
            view_entries.owners.insert(manager_in_version, owned_in(&self.view, owned.applied));
        }
        view_entries.write(view);
    }

    /// Copies the entries of a written view to its parent: managers that no longer own the field in the view lose it. Entries of
    /// versions that no longer exist are removed.
    pub(crate) fn copy_to_parent(&self, view: &Object, parent: &mut Object) {
        let mut entries = ManagedFields::read(parent).unwrap_or_default();
        let mut view_owners = ManagedFields::read(view).unwrap_or_default().owners;
        entries.owners.retain(|_, owned| self.field(&owned.version).is_some());
        for (manager, owned) in &mut entries.owners {
            let Some(Some(field)) = self.field(&owned.version) else { continue };
            // Upstream identifies appliers by name, and updaters also by version, which is that of the view here.
            let still_owns = manager.operation == Operation::Apply
                && view_owners.remove(&in_version(manager, self.view.0)).is_some();
            if !still_owns {
                owned.set = owned.set.difference(field);
            }
        }
        entries.owners.retain(|_, owned| !owned.set.is_empty());
        for (manager, owned) in view_owners {
            if owned.set.intersection(&self.view.1).is_empty() {
                continue;
            }
            // Without a time, as in upstream.
            let manager = in_version(&manager, self.parent.0);
            let owned = owned_in(&self.parent, owned.applied);
            if entries.owners.contains_key(&manager) {
                entries.extra_entries.push((manager, owned));
            } else {
                if manager.operation == Operation::Update {
                    entries.times.remove(&manager);
                }
                entries.owners.insert(manager, owned);
            }
        }
        entries.write(parent);
    }

    /// Field in a version of the parent: inner `None` if that version has no view, outer `None` if the version does not exist.
    fn field(&self, version: &str) -> Option<Option<&FieldSet>> {
        if version == self.parent.0 {
            return Some(Some(&self.parent.1));
        }
        self.others.iter().find(|(other, _)| other == version).map(|(_, field)| field.as_ref())
    }

    fn owns(&self, owned: &OwnedFields) -> bool {
        let field = self.field(&owned.version).flatten();
        field.is_some_and(|field| !owned.set.intersection(field).is_empty())
    }
}

fn set(path: &str) -> FieldSet {
    FieldSet::from_dotted_paths([path.trim_start_matches('.')])
}

fn owned_in((version, set): &(&str, FieldSet), applied: bool) -> OwnedFields {
    OwnedFields { set: set.clone(), version: (*version).into(), applied }
}

/// Manager with its entry in another version; appliers are the same in all versions.
fn in_version(manager: &Manager, version: &str) -> Manager {
    let version = match manager.operation {
        Operation::Apply => Box::default(),
        Operation::Update => version.into(),
    };
    Manager { version, ..manager.clone() }
}
