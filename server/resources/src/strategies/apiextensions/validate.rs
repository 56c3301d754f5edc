//! A definition as a whole: which modules validate it, in upstream's order.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object, names as patterns};

use super::layout::{Layout, Part};
use super::ratchet::{self, Demands};
use super::{columns, conversion, names, scale, schemas, selectable, stored_versions, versions};
use portico_registry::definition::{APPROVAL_ANNOTATION, Approval, is_protected};
use portico_validation::Errors;
use portico_validation::checks;

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

/// Validates a new definition; its metadata has been validated.
pub(super) fn created(new: &Object, demands: Demands<'_>, errors: &mut Errors) {
    name(new, errors);
    let layout = Layout::of(new);
    spec(&layout, demands, errors);
    rest(new, None, &layout, errors);
}

/// Validates a changed definition.
pub(super) fn changed(new: &Object, old: &Object, demands: Demands<'_>, errors: &mut Errors) {
    let (layout, before) = (Layout::of(new), old.at(&["spec"]));
    let settled_names = demands.settled_names;
    spec(&layout, demands, errors);
    let mut settled = |path: &[&'static str]| {
        let at =
            |spec: &Cursor<'_>| path.iter().fold(spec.clone(), |at, field| at.field(field)).str().to_owned();
        let (now, then) = (at(&layout.spec), at(&before));
        if now != then {
            let path = path.iter().fold(layout.spec.path(), |path, field| path.child(field));
            errors.push(Error::invalid(&path, now, checks::IMMUTABLE));
        }
    };
    if settled_names {
        settled(&["scope"]);
        settled(&["names", "kind"]);
    }
    settled(&["group"]);
    settled(&["names", "plural"]);
    rest(new, Some(old), &layout, errors);
}

/// Validates what a status may contain.
pub(super) fn status(new: &Object, errors: &mut Errors) {
    names::validate(&new.at(&["status", "acceptedNames"]), errors);
}

/// What follows the spec.
fn rest(new: &Object, old: Option<&Object>, layout: &Layout<'_>, errors: &mut Errors) {
    status(new, errors);
    stored_versions::validate(new, layout, errors);
    approval(new, old, errors);
    let preserve = layout.spec.field("preserveUnknownFields");
    let did = old.is_some_and(|old| old.at(&["spec", "preserveUnknownFields"]).bool());
    if preserve.bool() && !did {
        errors.push(preserve.invalid("cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"));
    }
}

/// A name, and what one is to be made of, is the plural's and the group's.
fn name(new: &Object, errors: &mut Errors) {
    let wanted = format!("{}.{}", new.str_at("spec.names.plural"), new.str_at("spec.group"));
    let other =
        |field| Some(new.metadata().field(field)).filter(|at| !at.str().is_empty() && at.str() != wanted);
    let others = ["generateName", "name"].into_iter().filter_map(other);
    errors.extend(others.map(|at| at.invalid("must be spec.names.plural+\".\"+spec.group")));
}

/// Validates the spec.
fn spec(layout: &Layout<'_>, demands: Demands<'_>, errors: &mut Errors) {
    group(&layout.spec.field("group"), errors);
    checks::required_one_of(&layout.spec.field("scope"), &SCOPES, errors);
    schemas::required(layout, &demands, errors);
    let traits = ratchet::traits(&layout.schemas());
    if traits.defaults && layout.spec.field("preserveUnknownFields").bool() {
        let preserve = layout.spec.field("preserveUnknownFields");
        errors.push(preserve.invalid("must be false in order to use defaults in the schema"));
    }
    let demands = demands.for_schemas(layout, traits);
    versions::each(layout, &demands, errors);
    versions::together(layout, errors);
    let wanted = layout.spec.field("names");
    names::required(&wanted, errors);
    names::validate(&wanted, errors);
    common(layout, &demands, errors);
    conversion::validate(&layout.spec, &demands, errors);
}

/// What all versions have alike.
fn common(layout: &Layout<'_>, demands: &Demands<'_>, errors: &mut Errors) {
    let schema = layout.common(Part::Schema);
    if let Some(schema) = &schema {
        let first = layout.versions.first().map(|version| version.field("name"));
        let name = first.as_ref().map_or("", Cursor::str);
        schemas::validate(schema, name, layout.any_has_status(), demands, errors);
    }
    if let Some(subresources) = layout.common(Part::Subresources) {
        scale::validate(&subresources, errors);
    }
    let shared = layout.common(Part::Columns);
    shared.iter().flat_map(Cursor::items).for_each(|column| columns::validate(&column, errors));
    if let Some(fields) = layout.common(Part::Selectable) {
        let schema = schema.map(|schema| schema.field("openAPIV3Schema"));
        selectable::of_all(&fields, schema.as_ref(), demands, errors);
    }
}

fn group(group: &Cursor<'_>, errors: &mut Errors) {
    let diagnostics = patterns::dns1123_subdomain(group.str());
    if group.str().is_empty() {
        errors.push(group.required(""));
    } else if !diagnostics.is_empty() {
        errors.push(group.invalid(&diagnostics.join(",")));
    } else if !group.str().contains('.') {
        errors.push(group.invalid("should be a domain with at least one dot"));
    }
}

/// Groups of the Kubernetes project need its approval (`validateAPIApproval` upstream); a state that stays is nobody's fault.
fn approval(new: &Object, old: Option<&Object>, errors: &mut Errors) {
    if !is_protected(new.str_at("spec.group")) {
        return;
    }
    let annotation = |object: &Object| object.annotation(APPROVAL_ANNOTATION).unwrap_or_default().to_owned();
    let text = annotation(new);
    let state = Approval::of(&text);
    if old.is_some_and(|old| Approval::of(&annotation(old)) == state) {
        return;
    }
    let path = Path::new("metadata.annotations").key(APPROVAL_ANNOTATION);
    match state {
        Approval::Approved | Approval::Bypassed => {}
        Approval::Missing => errors.push(Error::required(&path, &state.message(&text))),
        Approval::Invalid => errors.push(Error::invalid(&path, &text, &state.message(&text))),
    }
}
