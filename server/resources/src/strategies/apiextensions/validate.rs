//! Validation of a whole definition, in upstream's order.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object, names as patterns};

use super::internal_definition::{InternalDefinition, VersionPart};
use super::ratcheting::{self, DefinitionRules};
use super::{columns, conversion, names, scale, schemas, selectable, stored_versions, versions};
use portico_registry::definition::{APPROVAL_ANNOTATION, Approval, is_protected};
use portico_validation::Errors;
use portico_validation::checks;

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

/// Validates a new definition. Its metadata is already validated.
pub(super) fn validate_create(new: &Object, demands: DefinitionRules<'_>, errors: &mut Errors) {
    validate_name(new, errors);
    let layout = InternalDefinition::of(new);
    validate_spec(&layout, demands, errors);
    validate_status_and_approval(new, None, &layout, errors);
}

/// Validates a changed definition.
pub(super) fn validate_update(new: &Object, old: &Object, demands: DefinitionRules<'_>, errors: &mut Errors) {
    let (layout, before) = (InternalDefinition::of(new), old.at(&["spec"]));
    let settled_names = demands.immutable_names;
    validate_spec(&layout, demands, errors);
    let mut settled = |path: &[&'static str]| {
        let at =
            |spec: &Cursor<'_>| path.iter().fold(spec.clone(), |at, field| at.field(field)).str().to_owned();
        let (new_value, old_value) = (at(&layout.spec), at(&before));
        if new_value != old_value {
            let path = path.iter().fold(layout.spec.path(), |path, field| path.child(field));
            errors.push(Error::invalid(&path, new_value, checks::IMMUTABLE));
        }
    };
    if settled_names {
        settled(&["scope"]);
        settled(&["names", "kind"]);
    }
    settled(&["group"]);
    settled(&["names", "plural"]);
    validate_status_and_approval(new, Some(old), &layout, errors);
}

/// Validates the names in the status.
pub(super) fn validate_status(new: &Object, errors: &mut Errors) {
    names::validate(&new.at(&["status", "acceptedNames"]), errors);
}

/// Validates the status, stored versions, approval and `preserveUnknownFields`.
fn validate_status_and_approval(
    new: &Object,
    old: Option<&Object>,
    layout: &InternalDefinition<'_>,
    errors: &mut Errors,
) {
    validate_status(new, errors);
    stored_versions::validate(new, layout, errors);
    validate_approval(new, old, errors);
    let preserve = layout.spec.field("preserveUnknownFields");
    let did = old.is_some_and(|old| old.at(&["spec", "preserveUnknownFields"]).bool());
    if preserve.bool() && !did {
        errors.push(preserve.invalid("cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"));
    }
}

/// Checks that `metadata.name` and `metadata.generateName`, if set, have the form `PLURAL.GROUP`.
fn validate_name(new: &Object, errors: &mut Errors) {
    let expected = format!("{}.{}", new.str_at("spec.names.plural"), new.str_at("spec.group"));
    let other =
        |field| Some(new.metadata().field(field)).filter(|at| !at.str().is_empty() && at.str() != expected);
    let others = ["generateName", "name"].into_iter().filter_map(other);
    errors.extend(others.map(|at| at.invalid("must be spec.names.plural+\".\"+spec.group")));
}

/// Validates the spec.
fn validate_spec(layout: &InternalDefinition<'_>, demands: DefinitionRules<'_>, errors: &mut Errors) {
    validate_group(&layout.spec.field("group"), errors);
    checks::required_one_of(&layout.spec.field("scope"), &SCOPES, errors);
    schemas::validate_required(layout, &demands, errors);
    let traits = ratcheting::schema_features(&layout.schemas());
    if traits.defaults && layout.spec.field("preserveUnknownFields").bool() {
        let preserve = layout.spec.field("preserveUnknownFields");
        errors.push(preserve.invalid("must be false in order to use defaults in the schema"));
    }
    let demands = demands.with_schema_features(layout, traits);
    versions::validate_each(layout, &demands, errors);
    versions::validate_list(layout, errors);
    let requested = layout.spec.field("names");
    names::validate_required(&requested, errors);
    names::validate(&requested, errors);
    validate_shared_parts(layout, &demands, errors);
    conversion::validate(&layout.spec, &demands, errors);
}

/// Validates the parts that all versions share.
fn validate_shared_parts(
    layout: &InternalDefinition<'_>,
    demands: &DefinitionRules<'_>,
    errors: &mut Errors,
) {
    let schema = layout.shared_part(VersionPart::Schema);
    if let Some(schema) = &schema {
        let first = layout.versions.first().map(|version| version.field("name"));
        let name = first.as_ref().map_or("", Cursor::str);
        schemas::validate(schema, name, layout.any_has_status(), demands, errors);
    }
    if let Some(subresources) = layout.shared_part(VersionPart::Subresources) {
        scale::validate(&subresources, errors);
    }
    let shared = layout.shared_part(VersionPart::Columns);
    shared.iter().flat_map(Cursor::items).for_each(|column| columns::validate(&column, errors));
    if let Some(fields) = layout.shared_part(VersionPart::Selectable) {
        let schema = schema.map(|schema| schema.field("openAPIV3Schema"));
        selectable::validate_shared(&fields, schema.as_ref(), demands, errors);
    }
}

fn validate_group(group: &Cursor<'_>, errors: &mut Errors) {
    let diagnostics = patterns::dns1123_subdomain(group.str());
    if group.str().is_empty() {
        errors.push(group.required(""));
    } else if !diagnostics.is_empty() {
        errors.push(group.invalid(&diagnostics.join(",")));
    } else if !group.str().contains('.') {
        errors.push(group.invalid("should be a domain with at least one dot"));
    }
}

/// Validates the approval that groups of the Kubernetes project need (upstream's `validateAPIApproval`). An unchanged state is
/// accepted.
fn validate_approval(new: &Object, old: Option<&Object>, errors: &mut Errors) {
    if !is_protected(new.str_at("spec.group")) {
        return;
    }
    let annotation = |object: &Object| object.annotation(APPROVAL_ANNOTATION).unwrap_or_default().to_owned();
    let text = annotation(new);
    let state = Approval::parse(&text);
    if old.is_some_and(|old| Approval::parse(&annotation(old)) == state) {
        return;
    }
    let path = Path::new("metadata.annotations").key(APPROVAL_ANNOTATION);
    match state {
        Approval::Approved | Approval::Bypassed => {}
        Approval::Missing => errors.push(Error::required(&path, &state.message(&text))),
        Approval::Invalid => errors.push(Error::invalid(&path, &text, &state.message(&text))),
    }
}
