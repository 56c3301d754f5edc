//! Role and ClusterRole: rules for resources or paths, and aggregation of ClusterRoles.

use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, Object};

use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::label_selector;

/// Strategy of Role and ClusterRole.
pub(crate) struct Role {
    /// True for Role.
    pub(crate) namespaced: bool,
}

impl Strategy for Role {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        new.at(&["rules"]).items().for_each(|rule| self.validate_rule(&rule, errors));
        let aggregation = new.at(&["aggregationRule"]);
        if aggregation.is_present() {
            validate_selectors(&aggregation.field("clusterRoleSelectors"), errors);
        }
    }
}

impl Role {
    fn validate_rule(&self, rule: &Cursor<'_>, errors: &mut Errors) {
        let verbs = rule.field("verbs");
        if verbs.is_empty() {
            errors.push(verbs.required("verbs must contain at least one value"));
        }
        let (urls, groups, resources) =
            (rule.field("nonResourceURLs"), rule.field("apiGroups"), rule.field("resources"));
        if !urls.is_empty() {
            if self.namespaced {
                errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
            }
            if !groups.is_empty() || !resources.is_empty() || !rule.field("resourceNames").is_empty() {
                errors
                    .push(urls.invalid("rules cannot apply to both regular resources and non-resource URLs"));
            }
            return;
        }
        if groups.is_empty() {
            errors.push(groups.required("resource rules must supply at least one api group"));
        }
        if resources.is_empty() {
            errors.push(resources.required("resource rules must supply at least one resource"));
        }
    }
}

fn validate_selectors(selectors: &Cursor<'_>, errors: &mut Errors) {
    if selectors.is_empty() {
        let message = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(selectors.required(message));
    }
    for selector in selectors.items() {
        label_selector(&selector, errors);
        if LabelSelector::from_object(&selector).is_err() {
            // Upstream prints the selector after a failed conversion, which is null.
            errors.push(selector.invalid_as("null", "invalid label selector."));
        }
    }
}
