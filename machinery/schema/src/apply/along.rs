//! Walks over field sets according to a type: adds declared fields as members, and converts sets that were written when lists
//! and maps were granular to a type in which they are atomic.

use super::shape::{Map, Relation, Shape, TypeRef};
use crate::fields::{Node, PathElement, Set};
use crate::model::TypeSet;

/// Returns the set in which each declared field that has members below it is also a member.
pub(super) fn with_named_fields(types: &TypeSet, root: Map<'_>, set: &Set) -> Set {
    named(types, Some(Shape::Map(root)), set)
}

fn named(types: &TypeSet, shape: Option<Shape<'_>>, set: &Set) -> Set {
    let nodes = set.nodes().iter().map(|node| {
        let (ty, declared) = below(shape, &node.element);
        let children = named(types, ty.map(|ty| ty.shape(types)), &node.children);
        let member = node.member || (declared && !node.children.is_empty());
        Node { element: node.element.clone(), member, children }
    });
    Set::from_nodes(nodes.collect())
}

/// Returns the type at a path element, and true if it is a declared field.
fn below<'t>(shape: Option<Shape<'t>>, element: &PathElement) -> (Option<TypeRef<'t>>, bool) {
    match (shape, element) {
        (Some(Shape::Map(map)), PathElement::Field(name)) => map.entry(name),
        (Some(Shape::Deduced(map)), PathElement::Field(name)) => map.entry(name),
        (Some(Shape::List(list)), PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_)) => {
            (Some(list.of), false)
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
pub(super) fn fits(types: &TypeSet, root: Map<'_>, set: &Set) -> bool {
    fits_below(types, Shape::Map(root), set)
}

fn fits_below(types: &TypeSet, shape: Shape<'_>, set: &Set) -> bool {
    set.nodes().iter().filter(|node| !node.children.is_empty()).all(|node| {
        let ty = below(Some(shape), &node.element).0;
        ty.map(|ty| ty.shape(types)).is_none_or(|shape| match is_atomic(shape) {
            Some(false) => fits_below(types, shape, &node.children),
            atomic => atomic.is_none(),
        })
    })
}

/// Converts the set to the current type: members inside an atomic value are replaced by the whole value.
pub(super) fn reconciled(types: &TypeSet, root: Map<'_>, set: &Set) -> Set {
    reconcile(types, Shape::Map(root), set)
}

fn reconcile(types: &TypeSet, shape: Shape<'_>, set: &Set) -> Set {
    let nodes = set.nodes().iter().map(|node| {
        let kept = || node.clone();
        let Some(shape) = below(Some(shape), &node.element).0.map(|ty| ty.shape(types)) else {
            return kept();
        };
        if node.children.is_empty() {
            return kept();
        }
        let Some(atomic) = is_atomic(shape) else { return kept() };
        let (member, children) = if atomic {
            (true, Set::default())
        } else {
            (node.member, reconcile(types, shape, &node.children))
        };
        Node { element: node.element.clone(), member, children }
    });
    Set::from_nodes(nodes.collect())
}
