//! PodTemplate: a pod template without further fields.

use portico_machinery::Object;

use portico_registry::{DecodeStrategy, RequestTime, Strategy};
use portico_validation::Errors;
use portico_validation::pod_spec::{default_template, template_warnings, validate_template};

pub(crate) struct PodTemplate;

impl DecodeStrategy for PodTemplate {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&["template"], default_template);
    }
}

impl Strategy for PodTemplate {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_template(&new.at(&["template"]), errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        template_warnings(&new.at(&["template"]), old.map(|old| old.at(&["template"])).as_ref())
    }
}
