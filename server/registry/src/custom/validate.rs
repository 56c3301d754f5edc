//! Validation of custom resources by their schema.

use portico_kit::offload::is_abandoned;
use portico_machinery::{Bounded, Object, field};
use portico_schema::structural::rules::Findings;
use portico_schema::structural::{CustomResource, Place as EmbeddedPlace, rules_not_checked};

use super::scale;
use crate::served::ServedResource;
use crate::typed::Part;
use portico_validation::Errors;
use portico_validation::{self as validation, MetaRules};

/// Validation of one write.
#[derive(Clone, Copy)]
pub struct Validation<'a> {
    /// Kind in the version of the request.
    pub(crate) served: &'a ServedResource,
    /// Part that is written: the object or its status.
    pub(crate) part: Part<'a>,
    /// Current object; `None` for a create.
    pub(crate) old: Option<&'a Object>,
}

impl Validation<'_> {
    /// Validates an object. If its kind is wrong, no further checks are made.
    pub(crate) fn validate(self, new: &Object) -> Findings {
        let mut errors = Vec::new();
        if let Some(old) = self.old {
            validation::validate_any_update(new, old, self.served.info.namespaced, &mut errors);
        }
        let mut validated = Findings { errors: self.type_meta(new), warnings: Vec::new() };
        if validated.errors.is_empty() {
            self.metadata(new, &mut validated.errors);
            self.content(new, &mut validated.errors);
            self.rules(new, &mut validated);
        }
        errors.append(&mut validated.errors);
        Findings { errors, ..validated }
    }

    /// Evaluates rules, after all other checks: errors of rules about an object of a wrong type would be confusing.
    fn rules(self, new: &Object, validated: &mut Findings) {
        let Some(schema) = self.served.info.schema.custom().filter(|schema| schema.has_rules()) else {
            return;
        };
        if let Some(error) = rules_not_checked(&validated.errors) {
            validated.errors.push(error);
            return;
        }
        let checked = schema.check_rules(new, self.old, &is_abandoned);
        validated.errors.extend(checked.errors);
        validated.warnings.extend(checked.warnings);
    }

    fn type_meta(self, new: &Object) -> Errors {
        let (kind, version) = (&self.served.info.gvk.kind, &self.served.api_version);
        let wanted = [("kind", kind, new.kind()), ("apiVersion", version, new.api_version())];
        let wrong = wanted.into_iter().filter(|(_, wanted, found)| wanted != found);
        wrong
            .map(|(name, wanted, found)| {
                field::Error::invalid(&name.into(), found, &format!("must be {wanted}"))
            })
            .collect()
    }

    fn metadata(self, new: &Object, errors: &mut Errors) {
        match self.old {
            Some(old) => validation::validate_own_update(new, old, errors),
            None => validation::validate_create(new, MetaRules::of(&self.served.info), errors),
        }
    }

    fn content(self, new: &Object, errors: &mut Errors) {
        let status = self.part == Part::Subresource("status");
        let schema = self.served.info.schema.custom();
        errors.extend(schema.map(|schema| self.along(schema, status, new)).unwrap_or_default());
        let paths = self.served.custom.as_ref().and_then(|custom| custom.scale.as_ref());
        if let Some(paths) = paths {
            scale::validate(paths, !status, new, errors);
        }
        let Some(schema) = schema else { return };
        if !status {
            embedded(schema, new, errors);
        }
        errors.extend(match self.old {
            Some(old) => schema.validate_lists_update(new, old),
            None => schema.validate_lists(new),
        });
    }

    fn along(self, schema: &CustomResource, status: bool, new: &Object) -> Errors {
        match self.old {
            Some(old) if status => schema.validate_status_update(new, old),
            Some(old) => schema.validate_update(new, old),
            None => schema.validate(new),
        }
    }
}

/// Validates embedded resources: their type, and metadata by the rules of any object.
fn embedded(schema: &CustomResource, new: &Object, errors: &mut Errors) {
    errors.extend(schema.validate_embedded(new));
    let mut found = Bounded::field_errors();
    schema.each_embedded_metadata(new, |place, resource| found.extend(embedded_metadata(place, resource)));
    errors.extend(found.into_items());
}

/// Validates the metadata of an embedded resource, with errors at its path; the name may be absent.
pub fn embedded_metadata(place: &EmbeddedPlace<'_>, resource: &Object) -> Errors {
    let mut resource = resource.clone();
    if resource.name().is_empty() {
        resource.set(&["metadata", "name"], "unnamed");
    }
    let mut errors = Vec::new();
    let rules = MetaRules::of_embedded(!resource.namespace().is_empty());
    validation::validate_create(&resource, rules, &mut errors);
    if errors.is_empty() {
        return errors;
    }
    let path = place();
    for error in errors.iter_mut().filter(|_| !path.as_str().is_empty()) {
        error.path = field::Path::new(format!("{path}.{}", error.path));
    }
    errors
}
