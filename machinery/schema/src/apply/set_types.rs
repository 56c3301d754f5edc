//! Walks over field sets according to a type: adds declared fields as members, and converts sets that were written when lists
//! and maps were granular to a type in which they are atomic.

use super::shape::{Map, Relation, Shape, TypeRef};
use crate::fields::{FieldSet, PathElement, SetNode};
use crate::model::TypeSet;

/// Returns the set in which each declared field that has members below it is also a member.
pub(super) fn with_named_fields(types: &TypeSet, root: Map<'_>, set: &FieldSet) -> FieldSet {
    add_named_fields(types, Some(Shape::Map(root)), set)
}

fn add_named_fields(types: &TypeSet, shape: Option<Shape<'_>>, set: &FieldSet) -> FieldSet {
    let nodes = set.nodes().iter().map(|node| {
        let (ty, declared) = child_type(shape, &node.element);
        let children = add_named_fields(types, ty.map(|ty| ty.shape(types)), &node.children);
        let member = node.member || (declared && !node.children.is_empty());
        SetNode { element: node.element.clone(), member, children }
    });
    FieldSet::from_nodes(nodes.collect())
}

/// Returns the type at a path element, and true if it is a declared field.
fn child_type<'t>(shape: Option<Shape<'t>>, element: &PathElement) -> (Option<TypeRef<'t>>, bool) {
    match (shape, element) {
        (Some(Shape::Map(map)), PathElement::Field(name)) => map.entry(name),
        (Some(Shape::Deduced(map)), PathElement::Field(name)) => map.entry(name),
        (Some(Shape::List(list)), PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_)) => {
            (Some(list.element_type), false)
        }
        _ => (None, false),
    }
}

/// True if apply treats a value of this shape as one. Returns `None` if the shape does not determine it.
fn is_atomic(shape: Shape<'_>) -> Option<bool> {
    match shape {
        Shape::Map(map) => Some(map.atomic),
        Shape::List(list) => Some(matches!(list.relation, Relation::Atomic)),
        Shape::Untyped => Some(true),
        Shape::Scalar(_) | Shape::Deduced(_) => None,
    }
}

/// True if the set has no members inside atomic values, so that no conversion is needed.
pub(super) fn matches_atomics(types: &TypeSet, root: Map<'_>, set: &FieldSet) -> bool {
    matches_atomics_below(types, Shape::Map(root), set)
}

fn matches_atomics_below(types: &TypeSet, shape: Shape<'_>, set: &FieldSet) -> bool {
    set.nodes().iter().filter(|node| !node.children.is_empty()).all(|node| {
        let ty = child_type(Some(shape), &node.element).0;
        ty.map(|ty| ty.shape(types)).is_none_or(|shape| match is_atomic(shape) {
            Some(false) => matches_atomics_below(types, shape, &node.children),
            atomic => atomic.is_none(),
        })
    })
}

/// Converts the set to the current type: members inside an atomic value are replaced by the whole value.
pub(super) fn reconcile_atomics(types: &TypeSet, root: Map<'_>, set: &FieldSet) -> FieldSet {
    reconcile_below(types, Shape::Map(root), set)
}

fn reconcile_below(types: &TypeSet, shape: Shape<'_>, set: &FieldSet) -> FieldSet {
    let nodes = set.nodes().iter().map(|node| {
        let unchanged = || node.clone();
        let Some(shape) = child_type(Some(shape), &node.element).0.map(|ty| ty.shape(types)) else {
            return unchanged();
        };
        if node.children.is_empty() {
            return unchanged();
        }
        let Some(atomic) = is_atomic(shape) else { return unchanged() };
        let (member, children) = if atomic {
            (true, FieldSet::default())
        } else {
            (node.member, reconcile_below(types, shape, &node.children))
        };
        SetNode { element: node.element.clone(), member, children }
    });
    FieldSet::from_nodes(nodes.collect())
}
