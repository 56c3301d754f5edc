//! IngressClass: assigns Ingresses to a controller, which is immutable.

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use portico_registry::{DecodeStrategy, RequestTime, Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, values};

const CONTROLLER_MAX: usize = 250;
const DEFAULT_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

pub(crate) struct IngressClass;

impl DecodeStrategy for IngressClass {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&["spec", "parameters"], |parameters| {
            if !parameters.at(&["scope"]).is_present() {
                parameters.set(&["scope"], "Cluster");
            }
        });
    }
}

impl Strategy for IngressClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        validate_controller(&spec.field("controller"), errors);
        let reference = spec.field("parameters");
        if reference.is_present() {
            validate_parameters(&reference, errors);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let controller = ["spec", "controller"];
        checks::unchanged(&new.at(&controller), &old.at(&controller), errors);
        self.validate(new, errors);
    }
}

impl TableStrategy for IngressClass {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        if function == "ingressclass-name" {
            let marked = is_default(object);
            return Cell::text(format!("{}{}", object.name(), if marked { " (default)" } else { "" }));
        }
        let reference = object.at(&["spec", "parameters"]);
        if !reference.is_present() {
            return Cell::text("<none>");
        }
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(|field| reference.field(field).str());
        Cell::text(match group {
            "" => format!("{kind}/{name}"),
            group => format!("{kind}.{group}/{name}"),
        })
    }
}

/// True if a class is marked as default.
pub(super) fn is_default(class: &Object) -> bool {
    class.annotation(DEFAULT_ANNOTATION) == Some("true")
}

fn validate_controller(at: &Cursor<'_>, errors: &mut Errors) {
    if at.str().len() > CONTROLLER_MAX {
        return errors.push(Error::too_long(&at.path(), CONTROLLER_MAX));
    }
    checks::domain_prefixed_path(at, errors);
}

fn validate_parameters(reference: &Cursor<'_>, errors: &mut Errors) {
    let (group, scope, namespace) =
        (reference.field("apiGroup"), reference.field("scope"), reference.field("namespace"));
    if group.is_present() {
        checks::matches_rule(&group, names::dns1123_subdomain, errors);
    }
    checks::required(&reference.field("kind"), names::path_segment, errors);
    checks::required(&reference.field("name"), names::path_segment, errors);
    checks::one_of(&scope, &["Cluster", "Namespace"], errors);
    match scope.str() {
        "Namespace" if namespace.str().is_empty() => {
            errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => checks::matches_rule(&namespace, values::label, errors),
        "Cluster" if namespace.is_present() => {
            errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        _ => {}
    }
}
