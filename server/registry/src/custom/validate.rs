//! Validation of custom resources by their schema.

use portico_kit::offload::is_abandoned;
use portico_machinery::{Bounded, Object, field};
use portico_schema::structural::rules::RuleFindings;
use portico_schema::structural::{CustomResource, LazyPath as EmbeddedPlace, rules_not_checked};

use super::scale;
use crate::served_resource::ServedResource;
use crate::verb_types::ObjectPart;
use portico_validation::Errors;
use portico_validation::{self as validation, MetaRules};

/// Validation of one write.
#[derive(Clone, Copy)]
pub struct CustomValidation<'a> {
    /// Kind in the version of the request.
    pub(crate) served_resource: &'a ServedResource,
    /// Part that is written: the object or its status.
    pub(crate) part: ObjectPart<'a>,
    /// Current object; `None` for a create.
    pub(crate) old: Option<&'a Object>,
}

impl CustomValidation<'_> {
    /// Validates an object. If its kind is wrong, no further checks are made.
    pub(crate) fn validate(self, new: &Object) -> RuleFindings {
        let mut errors = Vec::new();
        if let Some(old) = self.old {
            validation::validate_common_update(new, old, self.served_resource.info.namespaced, &mut errors);
        }
        let mut findings = RuleFindings { errors: self.check_type_meta(new), warnings: Vec::new() };
        if findings.errors.is_empty() {
            self.check_metadata(new, &mut findings.errors);
            self.check_content(new, &mut findings.errors);
            self.check_rules(new, &mut findings);
        }
        errors.append(&mut findings.errors);
        RuleFindings { errors, ..findings }
    }

    /// Evaluates rules, after all other checks: errors of rules about an object of a wrong type would be confusing.
    fn check_rules(self, new: &Object, findings: &mut RuleFindings) {
        let Some(schema) = self.served_resource.info.schema.custom().filter(|schema| schema.has_rules())
        else {
            return;
        };
        if let Some(error) = rules_not_checked(&findings.errors) {
            findings.errors.push(error);
            return;
        }
        let rule_findings = schema.check_rules(new, self.old, &is_abandoned);
        findings.errors.extend(rule_findings.errors);
        findings.warnings.extend(rule_findings.warnings);
    }

    fn check_type_meta(self, new: &Object) -> Errors {
        let (kind, version) = (&self.served_resource.info.gvk.kind, &self.served_resource.api_version);
        let fields = [("kind", kind, new.kind()), ("apiVersion", version, new.api_version())];
        let mismatches = fields.into_iter().filter(|(_, wanted, found)| wanted != found);
        mismatches
            .map(|(name, wanted, found)| {
                field::Error::invalid(&name.into(), found, &format!("must be {wanted}"))
            })
            .collect()
    }

    fn check_metadata(self, new: &Object, errors: &mut Errors) {
        match self.old {
            Some(old) => validation::validate_object_meta_update(new, old, errors),
            None => {
                validation::validate_create(new, MetaRules::from_kind(&self.served_resource.info), errors)
            }
        }
    }

    fn check_content(self, new: &Object, errors: &mut Errors) {
        let status = self.part == ObjectPart::Subresource("status");
        let schema = self.served_resource.info.schema.custom();
        errors.extend(schema.map(|schema| self.validate_by_schema(schema, status, new)).unwrap_or_default());
        let paths = self.served_resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
        if let Some(paths) = paths {
            scale::validate(paths, !status, new, errors);
        }
        let Some(schema) = schema else { return };
        if !status {
            validate_embedded(schema, new, errors);
        }
        errors.extend(match self.old {
            Some(old) => schema.validate_lists_update(new, old),
            None => schema.validate_lists(new),
        });
    }

    fn validate_by_schema(self, schema: &CustomResource, status: bool, new: &Object) -> Errors {
        match self.old {
            Some(old) if status => schema.validate_status_update(new, old),
            Some(old) => schema.validate_update(new, old),
            None => schema.validate(new),
        }
    }
}

/// Validates embedded resources: their type, and metadata by the rules of any object.
fn validate_embedded(schema: &CustomResource, new: &Object, errors: &mut Errors) {
    errors.extend(schema.validate_embedded(new));
    let mut found = Bounded::field_errors();
    schema.visit_embedded_metadata(new, |embedded_path, resource| {
        found.extend(validate_embedded_metadata(embedded_path, resource))
    });
    errors.extend(found.into_items());
}

/// Validates the metadata of an embedded resource, with errors at its path; the name may be absent.
pub fn validate_embedded_metadata(embedded_path: &EmbeddedPlace<'_>, resource: &Object) -> Errors {
    let mut resource = resource.clone();
    if resource.name().is_empty() {
        resource.set(&["metadata", "name"], "unnamed");
    }
    let mut errors = Vec::new();
    let rules = MetaRules::embedded(!resource.namespace().is_empty());
    validation::validate_create(&resource, rules, &mut errors);
    if errors.is_empty() {
        return errors;
    }
    let path = embedded_path();
    for error in errors.iter_mut().filter(|_| !path.as_str().is_empty()) {
        error.path = field::Path::new(format!("{path}.{}", error.path));
    }
    errors
}
