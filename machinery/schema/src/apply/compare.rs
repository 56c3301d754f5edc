//! Differences between two objects of a type: added, modified and removed fields.

use std::collections::BTreeMap;

use portico_machinery::object::find_field;
use serde_json::{Map as Json, Value};

use super::item;
use super::misfit::TypeMismatch;
use super::reading::{Reading, Side, entries, items};
use super::shape::{List, Map, Relation, Shape, TypeRef};
use super::view::{emitted, same};
use crate::fields::{Node, PathElement, Set, compare_values};
use crate::model::TypeSet;

/// Differences between two objects. No field is in more than one of the sets; all are empty if the objects are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the old object has.
    pub removed: Set,
    /// Fields that both objects have, with different values.
    pub modified: Set,
    /// Fields that only the new object has.
    pub added: Set,
}

impl Comparison {
    /// True if the objects are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Applies a filter to each of the sets.
    #[must_use]
    pub fn filtered(self, filter: impl Fn(Set) -> Set) -> Self {
        Self { removed: filter(self.removed), modified: filter(self.modified), added: filter(self.added) }
    }

    /// Returns the added and modified fields.
    #[must_use]
    pub fn into_changed(self) -> Set {
        let mut changed = self.modified;
        changed.extend(self.added);
        changed
    }
}

/// Differences of a value and everything below it.
#[derive(Default)]
struct Delta {
    removed: Branch,
    modified: Branch,
    added: Branch,
}

#[derive(Default)]
struct Branch {
    member: bool,
    below: Vec<Node>,
}

impl Branch {
    fn push(&mut self, element: impl Fn() -> PathElement, child: Self) {
        if child.member || !child.below.is_empty() {
            let children = Set::from_nodes(child.below);
            self.below.push(Node { element: element(), member: child.member, children });
        }
    }
}

impl Delta {
    fn is_empty(&self) -> bool {
        let empty = |branch: &Branch| !branch.member && branch.below.is_empty();
        empty(&self.removed) && empty(&self.modified) && empty(&self.added)
    }

    /// Adds the differences of a child. Hardly ever more than one of the three has a difference, so the element is created lazily.
    fn push(&mut self, element: impl Fn() -> PathElement, child: Self) {
        self.removed.push(&element, child.removed);
        self.modified.push(&element, child.modified);
        self.added.push(&element, child.added);
    }

    /// Marks a value that exists on one side only as added or removed.
    fn mark(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.added.member |= old.is_none();
        self.removed.member |= old.is_some() && new.is_none();
    }
}

/// Compares two objects.
pub(super) fn objects(
    types: &TypeSet,
    root: Map<'_>,
    old: &Json<String, Value>,
    new: &Json<String, Value>,
    reading: Reading,
) -> Result<Comparison, TypeMismatch> {
    let delta = Walk { types, reading }.map(root, Some(old), Some(new))?;
    Ok(Comparison {
        removed: Set::from_nodes(delta.removed.below),
        modified: Set::from_nodes(delta.modified.below),
        added: Set::from_nodes(delta.added.below),
    })
}

struct Walk<'t> {
    types: &'t TypeSet,
    reading: Reading,
}

type Result<T, E = TypeMismatch> = std::result::Result<T, E>;

impl<'t> Walk<'t> {
    fn value(&self, ty: TypeRef<'t>, old: Side<'_>, new: Side<'_>) -> Result<Delta> {
        match ty.shape(self.types) {
            Shape::Map(map) if !map.atomic => self.map_value(map, ty, old, new),
            Shape::List(list) if !matches!(list.relation, Relation::Atomic) => self.list(&list, ty, old, new),
            Shape::Deduced(map) => self.deduced(map, ty, old, new),
            _ => Ok(self.leaf(ty, old, new)),
        }
    }

    fn leaf(&self, ty: TypeRef<'t>, old: Side<'_>, new: Side<'_>) -> Delta {
        let mut delta = Delta::default();
        delta.mark(old, new);
        if let (Some(old), Some(new)) = (old, new) {
            delta.modified.member = !self.same(ty, old, new);
        }
        delta
    }

    /// True if two values that are compared as a whole are equal: as printed for typed objects, otherwise as they are.
    fn same(&self, ty: TypeRef<'t>, old: &Value, new: &Value) -> bool {
        match self.reading {
            Reading::Typed => same(self.types, ty, old, new),
            Reading::Raw | Reading::Whole => compare_values(old, new).is_eq(),
        }
    }

    /// Compares maps by key and everything else as a whole. If a value becomes a map, it is modified, and its keys are added.
    fn deduced(&self, shape: Map<'t>, ty: TypeRef<'t>, old: Side<'_>, new: Side<'_>) -> Result<Delta> {
        let map = |side: Side<'_>| side.is_some_and(Value::is_object);
        let leaf = |side: Side<'_>| side.is_some_and(|v| !v.is_object() && !v.is_null());
        if shape.atomic || (!map(old) && !map(new)) {
            return Ok(self.leaf(ty, old, new));
        }
        let mut delta = self.map_value(shape, ty, old.filter(|_| !leaf(old)), new.filter(|_| !leaf(new)))?;
        if leaf(old) || leaf(new) {
            delta.modified.member = true;
            (delta.added.member, delta.removed.member) = (false, false);
        }
        Ok(delta)
    }

    fn map_value(&self, map: Map<'t>, ty: TypeRef<'t>, old: Side<'_>, new: Side<'_>) -> Result<Delta> {
        let (a, b) = (entries(old)?, entries(new)?);
        let empty = |side: Option<&Json<String, Value>>| side.is_none_or(Json::is_empty);
        // A leaf, so that empty and null differ. A typed struct is excluded: it prints more than it contains.
        if empty(a) && empty(b) && !(self.reading == Reading::Typed && map.structure().is_some()) {
            return Ok(self.leaf(ty, old, new));
        }
        let mut delta = self.map(map, a, b)?;
        delta.mark(old, new);
        Ok(delta)
    }

    fn map(
        &self,
        map: Map<'t>,
        old: Option<&Json<String, Value>>,
        new: Option<&Json<String, Value>>,
    ) -> Result<Delta> {
        let mut delta = Delta::default();
        let at =
            |side: Option<&'_ Json<String, Value>>, key: &str| side.is_some_and(|map| map.contains_key(key));
        if let Some(ty) = map.structure() {
            for field in ty.fields_by_name() {
                let find = |map| find_field(map, &field.name);
                let (mut a, mut b) = (old.and_then(find), new.and_then(find));
                if self.reading == Reading::Typed {
                    a = old.and_then(|_| emitted(self.types, field, a));
                    b = new.and_then(|_| emitted(self.types, field, b));
                }
                self.entry(&mut delta, TypeRef::Field(field), &field.name, a, b)?;
            }
        }
        let declared = |key: &str| map.structure().is_some_and(|ty| ty.field(key).is_some());
        let gone =
            old.into_iter().flatten().filter(|(key, _)| !at(new, key)).map(|(key, a)| (key, Some(a), None));
        let here = new.into_iter().flatten().map(|(key, b)| (key, old.and_then(|old| old.get(key)), Some(b)));
        for (key, a, b) in gone.chain(here).filter(|(key, ..)| !declared(key)) {
            let of = map
                .entry(key)
                .0
                .ok_or_else(|| TypeMismatch::at(&format!(".{key}"), "field not declared in schema"))?;
            self.entry(&mut delta, of, key, a, b)?;
        }
        Ok(delta)
    }

    fn entry(
        &self,
        delta: &mut Delta,
        ty: TypeRef<'t>,
        key: &str,
        old: Side<'_>,
        new: Side<'_>,
    ) -> Result<()> {
        let nothing = old.is_none() && new.is_none_or(|v| v.is_null() && self.reading == Reading::Raw);
        if nothing {
            return Ok(());
        }
        let child = self.value(ty, old, new).map_err(|e| e.below(&format!(".{key}")))?;
        if !child.is_empty() {
            delta.push(|| PathElement::field(key), child);
        }
        Ok(())
    }

    fn list(&self, list: &List<'t>, ty: TypeRef<'t>, old: Side<'_>, new: Side<'_>) -> Result<Delta> {
        let (a, b) = (items(old)?, items(new)?);
        if a.is_empty() && b.is_empty() {
            return Ok(self.leaf(ty, old, new));
        }
        let mut found: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in a {
            found.entry(self.element(list, item)?).or_default().0.push(item);
        }
        for item in b {
            found.entry(self.element(list, item)?).or_default().1.push(item);
        }
        let mut delta = Delta::default();
        for (element, (a, b)) in &found {
            let child = self.items(list.of, a, b).map_err(|e| e.below(&element.to_string()))?;
            delta.push(|| element.clone(), child);
        }
        delta.mark(old, new);
        Ok(delta)
    }

    fn element(&self, list: &List<'t>, item: &Value) -> Result<PathElement> {
        item::element(self.types, list, item, self.reading).map_err(|why| TypeMismatch::at("", &why))
    }

    /// Compares elements with the same identity. More than one on a side are duplicates, which are compared as a whole.
    fn items(&self, of: TypeRef<'t>, old: &[&Value], new: &[&Value]) -> Result<Delta> {
        let (a, b) = (old.first().copied(), new.first().copied());
        let mut delta = Delta::default();
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => return self.value(of, a, b),
            (2.., 2..) => {
                let all = |(a, b): (&&Value, &&Value)| self.same(of, a, b);
                delta.modified.member = old.len() != new.len() || !old.iter().zip(new).all(all);
            }
            (2.., _) => {
                if b.is_some() {
                    delta = self.value(of, None, b)?;
                }
                delta.removed.member = true;
            }
            (_, _) => {
                if a.is_some() {
                    delta = self.value(of, a, None)?;
                }
                delta.added.member = true;
            }
        }
        Ok(delta)
    }
}
