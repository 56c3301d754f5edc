//! SelfSubjectRulesReview: lists the permissions of the caller in a namespace, as far as they can be listed.

use portico_machinery::rbac::Rule;
use portico_machinery::{Object, Status};
use serde::Serialize;

use portico_registry::{Acting, Action, ActionRequest, Outcome, Pending};

pub(crate) struct RulesReview;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    resource_rules: Vec<Rule>,
    non_resource_rules: Vec<Rule>,
    incomplete: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    evaluation_error: String,
}

impl Action for RulesReview {
    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> Pending<'a, ()> {
        Box::pin(async {
            if request.body.str_at("spec.namespace").is_empty() {
                return Err(Box::new(Status::bad_request("no namespace on request")));
            }
            Ok(())
        })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> Acting<'a> {
        Box::pin(async move {
            let namespace = request.body.at(&["spec", "namespace"]).str();
            let known = request.verbs.objects.authorizer.rules_for(&request.context.user, namespace);
            let on_resources = known.rules.iter().filter(|rule| !rule.resources.is_empty());
            let on_paths = known.rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
            let status = Answered {
                resource_rules: on_resources
                    .map(|rule| Rule { non_resource_urls: Vec::new(), ..rule.clone() })
                    .collect(),
                non_resource_rules: on_paths
                    .map(|rule| Rule {
                        verbs: rule.verbs.clone(),
                        non_resource_urls: rule.non_resource_urls.clone(),
                        ..Rule::default()
                    })
                    .collect(),
                incomplete: known.incomplete,
                evaluation_error: known.errors.join(", "),
            };
            let mut review = Object::new(&request.served.info.gvk);
            review.set(&["status"], status);
            Ok(Outcome::Created(review))
        })
    }
}
