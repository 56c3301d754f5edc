//! Index of the definitions that documents describe, by the group versions that they serve.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_schema::TypeSet;

use super::{Definition, Group};

#[derive(Default)]
pub(crate) struct Definitions {
    by_name: HashMap<String, Arc<Definition>>,
    /// Definitions by plural resource name, in the order of documents.
    by_group_version: HashMap<GroupVersion, BTreeMap<String, Arc<Definition>>>,
}

impl Definitions {
    /// Applies changes of definitions by name; `None` for removed ones. Returns the group versions whose documents change, with
    /// their new groups; `None` if no definition is left.
    pub fn change(
        &mut self,
        types: &Arc<TypeSet>,
        changes: impl IntoIterator<Item = (String, Option<Definition>)>,
    ) -> Vec<(GroupVersion, Option<Group>)> {
        let mut affected = BTreeSet::new();
        for (name, after) in changes {
            self.set(name, after.filter(Definition::is_published), &mut affected);
        }
        let group = |gv: GroupVersion| {
            let members = self.by_group_version.get(&gv);
            let group =
                members.map(|members| Group::new(gv.clone(), members.values().cloned().collect(), types));
            (gv, group)
        };
        affected.into_iter().map(group).collect()
    }

    /// Returns the names of all definitions.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.keys()
    }

    fn set(&mut self, name: String, after: Option<Definition>, affected: &mut BTreeSet<GroupVersion>) {
        if let (Some(before), Some(after)) = (self.by_name.get(&name), &after)
            && before.has_same_documents(after)
        {
            before.replace_stored(after);
            return;
        }
        let after = after.map(Arc::new);
        let before = match &after {
            Some(after) => self.by_name.insert(name, Arc::clone(after)),
            None => self.by_name.remove(&name),
        };
        if let Some(before) = before {
            self.remove(&before, affected);
        }
        for gv in after.iter().flat_map(|after| after.group_versions()) {
            affected.insert(gv.clone());
            let (resource, after) = (after.iter().map(|a| a.facts().names().plural.clone()), after.clone());
            self.by_group_version.entry(gv).or_default().extend(resource.zip(after));
        }
    }

    fn remove(&mut self, before: &Definition, affected: &mut BTreeSet<GroupVersion>) {
        for gv in before.group_versions() {
            if let Some(members) = self.by_group_version.get_mut(&gv) {
                members.remove(&before.facts().names().plural);
                if members.is_empty() {
                    self.by_group_version.remove(&gv);
                }
            }
            affected.insert(gv);
        }
    }
}
