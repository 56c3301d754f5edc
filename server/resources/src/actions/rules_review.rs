//! SelfSubjectRulesReview: lists the permissions of the caller in a namespace, as far as they can be listed.

use portico_machinery::rbac::Rule;
use portico_machinery::{Object, Status};
use serde::Serialize;

use portico_registry::{Action, ActionFuture, ActionOutcome, ActionRequest, ResultFuture};

pub(crate) struct RulesReview;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RulesStatus {
    resource_rules: Vec<Rule>,
    non_resource_rules: Vec<Rule>,
    incomplete: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    evaluation_error: String,
}

impl Action for RulesReview {
    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> ResultFuture<'a, ()> {
        Box::pin(async {
            if request.body.str_at("spec.namespace").is_empty() {
                return Err(Box::new(Status::bad_request("no namespace on request")));
            }
            Ok(())
        })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a> {
        Box::pin(async move {
            let namespace = request.body.at(&["spec", "namespace"]).str();
            let rules = request.verbs.objects.authorizer.rules_for(&request.context.user, namespace);
            let on_resources = rules.rules.iter().filter(|rule| !rule.resources.is_empty());
            let on_paths = rules.rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
            let status = RulesStatus {
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
                incomplete: rules.incomplete,
                evaluation_error: rules.errors.join(", "),
            };
            let mut review = Object::new(&request.served_resource.info.gvk);
            review.set(&["status"], status);
            Ok(ActionOutcome::Created(review))
        })
    }
}
