//! May this user do this: a SubjectAccessReview.

use std::collections::BTreeMap;

use portico_auth::Decision;
use portico_auth::authz::{Decider, Deciding};
use portico_machinery::Attributes;
use serde::{Deserialize, Serialize};

use super::{Asker, Review};

/// Asks what callers may do.
pub struct AccessAsker(pub Asker);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    user: &'a str,
    uid: &'a str,
    groups: &'a [String],
    extra: &'a BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_attributes: Option<Resource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_resource_attributes: Option<Path<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    verb: &'a str,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_selector: Option<Selector<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector<'a> {
    raw_selector: &'a str,
}

#[derive(Serialize)]
struct Path<'a> {
    verb: &'a str,
    path: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    allowed: bool,
    denied: bool,
    reason: String,
}

impl Review for Spec<'_> {
    const GROUP: &'static str = "authorization.k8s.io";
    const KIND: &'static str = "SubjectAccessReview";
    const RESOURCE: &'static str = "subjectaccessreviews";
    type Answered = Said;
}

impl<'a> Spec<'a> {
    fn of(attributes: &'a Attributes) -> Self {
        let (user, r) = (&attributes.user, &attributes.request);
        let resource = Resource {
            verb: &r.verb,
            group: &r.api_group,
            version: &r.api_version,
            resource: &r.resource,
            subresource: &r.subresource,
            namespace: &r.namespace,
            name: &r.name,
            field_selector: (!r.field_selector.is_empty())
                .then_some(Selector { raw_selector: &r.field_selector }),
        };
        Self {
            user: &user.name,
            uid: &user.uid,
            groups: &user.groups,
            extra: &user.extra,
            resource_attributes: r.is_resource_request.then_some(resource),
            non_resource_attributes: (!r.is_resource_request)
                .then_some(Path { verb: &r.verb, path: &r.path }),
        }
    }
}

impl Decider for AccessAsker {
    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Deciding<'a> {
        Box::pin(async move {
            let said = self.0.review(&Spec::of(attributes)).await?;
            Some(match (said.allowed, said.denied) {
                (true, _) => Decision::allow(said.reason),
                (false, true) => Decision::deny(said.reason),
                (false, false) => Decision::no_opinion(said.reason),
            })
        })
    }
}
