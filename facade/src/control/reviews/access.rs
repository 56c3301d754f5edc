//! SubjectAccessReview: decides whether a user may perform a request.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portico_auth::Decision;
use portico_auth::authz::review::{self, is_cacheable};
use portico_auth::authz::{MAX_CACHED_ANSWERS, RemoteAuthorizer, RemoteDecisionFuture};
use portico_kit::expiring_cache::ExpiringCache;
use portico_machinery::Attributes;
use portico_machinery::selector::{FieldSelector, LabelSelector};
use serde::{Deserialize, Serialize};

use super::{Review, ReviewClient, ReviewError};

/// Time for which a facade reuses an allowed decision while the control service is unavailable.
///
/// Limit (Authentication and authorization): requests get 503.
const STALE_DECISION_TTL: Duration = Duration::from_secs(600);

/// Authorizes requests by reviews. While the control service is unavailable, earlier decisions that allowed a request are reused.
pub struct AccessReviewClient {
    asker: ReviewClient,
    allowed: AllowedDecisions,
}

impl AccessReviewClient {
    /// Creates a client without earlier decisions.
    #[must_use]
    pub fn new(asker: ReviewClient) -> Self {
        Self { asker, allowed: AllowedDecisions::new() }
    }
}

/// Decisions that allowed a request, for use while no control service can be reached.
struct AllowedDecisions(ExpiringCache<Decision>);

impl AllowedDecisions {
    fn new() -> Self {
        Self(ExpiringCache::new(MAX_CACHED_ANSWERS))
    }

    /// Returns the decision of a review. `None` if there is no review and no earlier decision applies: a control service that
    /// responds with an error may have revoked the permission.
    fn decide(
        &self,
        attributes: &Attributes,
        reviewed: Result<ReviewStatus, ReviewError>,
    ) -> Option<Decision> {
        let question = review::ReviewSpec::from_attributes(attributes).to_json();
        let status = match reviewed {
            Ok(status) => status,
            Err(ReviewError::Unreachable(_)) => return self.0.get(&question, Instant::now()),
            Err(ReviewError::Failed(_)) => return None,
        };
        let decision = match (status.allowed, status.denied) {
            (true, _) => Decision::allow(status.reason),
            (false, true) => Decision::deny(status.reason).with_error(status.error),
            (false, false) => Decision::no_opinion(status.reason).with_error(status.error),
        };
        if decision.is_allowed() && is_cacheable(attributes) {
            self.0.insert(&question, decision.clone(), Instant::now(), STALE_DECISION_TTL);
        } else {
            self.0.remove(&question);
        }
        Some(decision)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessReviewSpec<'a> {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<Selector<'a>>,
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
struct ReviewStatus {
    allowed: bool,
    denied: bool,
    reason: String,
    #[serde(rename = "evaluationError")]
    error: String,
}

impl Review for AccessReviewSpec<'_> {
    const GROUP: &'static str = "authorization.k8s.io";
    const KIND: &'static str = "SubjectAccessReview";
    const RESOURCE: &'static str = "subjectaccessreviews";
    type Status = ReviewStatus;
}

impl<'a> AccessReviewSpec<'a> {
    fn from_attributes(attributes: &'a Attributes) -> Self {
        let (user, r) = (&attributes.user, &attributes.request);
        // A selector that cannot be parsed is omitted: the review then covers more, never less.
        let selector = |text: &'a str, is_valid: bool| {
            (is_valid && !text.is_empty()).then_some(Selector { raw_selector: text })
        };
        let resource = Resource {
            verb: &r.verb,
            group: &r.api_group,
            version: &r.api_version,
            resource: &r.resource,
            subresource: &r.subresource,
            namespace: &r.namespace,
            name: &r.name,
            field_selector: selector(&r.field_selector, FieldSelector::parse(&r.field_selector).is_ok()),
            label_selector: selector(&r.label_selector, LabelSelector::parse(&r.label_selector).is_ok()),
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

impl RemoteAuthorizer for AccessReviewClient {
    fn decide<'a>(&'a self, attributes: &'a Attributes) -> RemoteDecisionFuture<'a> {
        Box::pin(async move {
            let reviewed = self.asker.review(&AccessReviewSpec::from_attributes(attributes)).await;
            self.allowed.decide(attributes, reviewed)
        })
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::UserInfo;

    use super::*;

    #[test]
    fn an_earlier_decision_applies_only_while_no_control_service_can_be_reached() {
        let allowed = AllowedDecisions::new();
        let question = Attributes::path(UserInfo::new("alice", ["dev"]), "get", "/metrics");
        let decide = |reviewed| allowed.decide(&question, reviewed).map(|decision| decision.is_allowed());
        let unreachable = || Err(ReviewError::Unreachable("no connection".to_owned()));
        let failed = || Err(ReviewError::Failed("review failed with code 500".to_owned()));
        assert_eq!((decide(unreachable()), decide(failed())), (None, None), "nothing was allowed yet");
        let may = |allowed| Ok(ReviewStatus { allowed, ..ReviewStatus::default() });
        assert_eq!(decide(may(true)), Some(true));
        assert_eq!(decide(failed()), None);
        assert_eq!(decide(unreachable()), Some(true));
        assert_eq!(decide(may(false)), Some(false));
        assert_eq!(decide(unreachable()), None);
    }
}
