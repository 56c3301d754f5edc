//! Walks of sets along a type: named fields made members, and sets that were written when lists and maps were granular
//! brought to a type in which they are atomic.

use super::shape::{Map, Relation, Shape, TypeRef};
use crate::fields::{Node, PathElement, Set};
use crate::model::TypeSet;

/// The set with each declared field that has something below it a member itself.
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

/// The type of what a step leads to, and whether it is a declared field.
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

/// Whether apply makes one of a value of this shape; nothing where there is nothing to say.
fn is_atomic(shape: Shape<'_>) -> Option<bool> {
    match shape {
        Shape::Map(map) => Some(map.atomic),
        Shape::List(list) => Some(matches!(list.relation, Relation::Atomic)),
        Shape::Untyped => Some(true),
        Shape::Scalar(_) | Shape::Deduced(_) => None,
    }
}

/// Whether nobody owns anything inside of what is atomic: then there is nothing to reconcile.
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

/// The set as the type is now: who owned something inside what is atomic now owns the whole of it.
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
