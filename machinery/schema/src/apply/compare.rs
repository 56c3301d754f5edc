//! Differences between two objects of a type: added, modified and removed fields.

use std::collections::BTreeMap;

use portico_machinery::object::find_field;
use serde_json::{Map as Json, Value};

use super::item;
use super::reading::{ReadMode, Side, entries, items};
use super::shape::{List, Map, Relation, Shape, TypeRef};
use super::type_mismatch::TypeMismatch;
use super::view::{emitted_value, prints_same};
use crate::fields::{FieldSet, PathElement, SetNode, compare_values};
use crate::model::TypeSet;

/// Differences between two objects. No field is in more than one of the sets; all are empty if the objects are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the old object has.
    pub removed: FieldSet,
    /// Fields that both objects have, with different values.
    pub modified: FieldSet,
    /// Fields that only the new object has.
    pub added: FieldSet,
}

impl Comparison {
    /// True if the objects are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Applies a filter to each of the sets.
    #[must_use]
    pub fn map_sets(self, filter: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self { removed: filter(self.removed), modified: filter(self.modified), added: filter(self.added) }
    }

    /// Returns the added and modified fields.
    #[must_use]
    pub fn into_changed(self) -> FieldSet {
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
    children: Vec<SetNode>,
}

impl Branch {
    fn push(&mut self, element: impl Fn() -> PathElement, child: Self) {
        if child.member || !child.children.is_empty() {
            let children = FieldSet::from_nodes(child.children);
            self.children.push(SetNode { element: element(), member: child.member, children });
        }
    }
}

impl Delta {
    fn is_empty(&self) -> bool {
        let empty = |branch: &Branch| !branch.member && branch.children.is_empty();
        empty(&self.removed) && empty(&self.modified) && empty(&self.added)
    }

    /// Adds the differences of a child. Hardly ever more than one of the three has a difference, so the
    /// element is created lazily.
    fn push(&mut self, element: impl Fn() -> PathElement, child: Self) {
        self.removed.push(&element, child.removed);
        self.modified.push(&element, child.modified);
        self.added.push(&element, child.added);
    }

    /// Marks a value that exists on one side only as added or removed.
    fn mark_presence(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.added.member |= old.is_none();
        self.removed.member |= old.is_some() && new.is_none();
    }
}

/// Compares two objects.
pub(super) fn compare_objects(
    types: &TypeSet,
    root: Map<'_>,
    old: &Json<String, Value>,
    new: &Json<String, Value>,
    reading: ReadMode,
) -> Result<Comparison, TypeMismatch> {
    let delta = Comparer { types, reading }.map(root, Some(old), Some(new))?;
    Ok(Comparison {
        removed: FieldSet::from_nodes(delta.removed.children),
        modified: FieldSet::from_nodes(delta.modified.children),
        added: FieldSet::from_nodes(delta.added.children),
    })
}

struct Comparer<'t> {
    types: &'t TypeSet,
    reading: ReadMode,
}

type Result<T, E = TypeMismatch> = std::result::Result<T, E>;

impl<'t> Comparer<'t> {
    fn value(&self, ty: TypeRef<'t>, old: Side<'_>, new: Side<'_>) -> Result<Delta> {
        match ty.shape(self.types) {
            Shape::Map(map) if !map.atomic => self.map_value(map, ty, old, new),
            Shape::List(list) if !matches!(list.relation, Relation::Atomic) => self.list(&list, ty, old, new),
            Shape::Deduced(map) => self.compare_deduced(map, ty, old, new),
            _ => Ok(self.leaf(ty, old, new)),
        }
    }

    fn leaf(&self, ty: TypeRef<'t>, old: Side<'_>, new: Side<'_>) -> Delta {
        let mut delta = Delta::default();
        delta.mark_presence(old, new);
        if let (Some(old), Some(new)) = (old, new) {
            delta.modified.member = !self.is_same(ty, old, new);
        }
        delta
    }

    /// True if two values that are compared as a whole are equal: as printed for typed objects, otherwise as they are.
    fn is_same(&self, ty: TypeRef<'t>, old: &Value, new: &Value) -> bool {
        match self.reading {
            ReadMode::Typed => prints_same(self.types, ty, old, new),
            ReadMode::Raw | ReadMode::RawWithNull => compare_values(old, new).is_eq(),
        }
    }

    /// Compares maps by key and everything else as a whole. If a value becomes a map, it is modified, and its keys are added.
    fn compare_deduced(
        &self,
        shape: Map<'t>,
        ty: TypeRef<'t>,
        old: Side<'_>,
        new: Side<'_>,
    ) -> Result<Delta> {
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
        if empty(a) && empty(b) && !(self.reading == ReadMode::Typed && map.struct_type().is_some()) {
            return Ok(self.leaf(ty, old, new));
        }
        let mut delta = self.map(map, a, b)?;
        delta.mark_presence(old, new);
        Ok(delta)
    }

    fn map(
        &self,
        map: Map<'t>,
        old: Option<&Json<String, Value>>,
        new: Option<&Json<String, Value>>,
    ) -> Result<Delta> {
        let mut delta = Delta::default();
        let has_key =
            |side: Option<&'_ Json<String, Value>>, key: &str| side.is_some_and(|map| map.contains_key(key));
        if let Some(ty) = map.struct_type() {
            for field in ty.fields_by_name() {
                let find = |map| find_field(map, &field.name);
                let (mut a, mut b) = (old.and_then(find), new.and_then(find));
                if self.reading == ReadMode::Typed {
                    a = old.and_then(|_| emitted_value(self.types, field, a));
                    b = new.and_then(|_| emitted_value(self.types, field, b));
                }
                self.entry(&mut delta, TypeRef::Field(field), &field.name, a, b)?;
            }
        }
        let declared = |key: &str| map.struct_type().is_some_and(|ty| ty.field(key).is_some());
        let removed = old
            .into_iter()
            .flatten()
            .filter(|(key, _)| !has_key(new, key))
            .map(|(key, a)| (key, Some(a), None));
        let present =
            new.into_iter().flatten().map(|(key, b)| (key, old.and_then(|old| old.get(key)), Some(b)));
        for (key, a, b) in removed.chain(present).filter(|(key, ..)| !declared(key)) {
            let of = map
                .entry(key)
                .0
                .ok_or_else(|| TypeMismatch::new(&format!(".{key}"), "field not declared in schema"))?;
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
        let nothing = old.is_none() && new.is_none_or(|v| v.is_null() && self.reading == ReadMode::Raw);
        if nothing {
            return Ok(());
        }
        let child = self.value(ty, old, new).map_err(|e| e.prefixed(&format!(".{key}")))?;
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
            let child = self.items(list.element_type, a, b).map_err(|e| e.prefixed(&element.to_string()))?;
            delta.push(|| element.clone(), child);
        }
        delta.mark_presence(old, new);
        Ok(delta)
    }

    fn element(&self, list: &List<'t>, item: &Value) -> Result<PathElement> {
        item::path_element(self.types, list, item, self.reading)
            .map_err(|reason| TypeMismatch::new("", &reason))
    }

    /// Compares elements with the same identity. More than one on a side are duplicates, which are compared as a whole.
    fn items(&self, of: TypeRef<'t>, old: &[&Value], new: &[&Value]) -> Result<Delta> {
        let (a, b) = (old.first().copied(), new.first().copied());
        let mut delta = Delta::default();
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => return self.value(of, a, b),
            (2.., 2..) => {
                let all = |(a, b): (&&Value, &&Value)| self.is_same(of, a, b);
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
