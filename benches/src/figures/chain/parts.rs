//! Parts of the chain, called on one thread: duration of a decision, and token lookups per second.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_auth::authn::{TokenKeys, TokenReviewBackend, TokenReviewCache, TokenReviewFuture, TokenTrust};
use portico_auth::headers::NoHeaders;
use portico_auth::{AuthenticatorChain, AuthnOutcome, Credentials};
use portico_machinery::rbac::{Binding, Fact, Key, Policy, PolicyDecision, Resource, RoleRef, Rule, Subject};
use portico_machinery::{RequestInfo, UserInfo};

use super::{BINDINGS, NAME};
use crate::Failure;
use crate::report::{Goal, Report};

/// Maximum time of a decision in microseconds.
const DECISION: f64 = 2.0;
/// Minimum lookups of cached tokens per second.
const CHECKS: f64 = 200_000.0;
const TIME: Duration = Duration::from_secs(2);
/// A bootstrap token, which needs no key.
const TOKEN: &str = "abcdef.0123456789abcdef";

pub(super) async fn measure(report: &mut Report) -> Result<(), Failure> {
    let (policy, user, request) = (policy(), UserInfo::new("user-1000", ["system:authenticated"]), request());
    if !matches!(policy.decide(&user, &request), PolicyDecision::Allowed(_)) {
        return Err("the binding does not allow".into());
    }
    let each = per_second(|| {
        black_box(policy.decide(black_box(&user), black_box(&request)));
    });
    report.add(NAME, "a decision by RBAC, 2,000 bindings", 1e6 / each, "us", Goal::AtMost(DECISION));

    let (reviews, trust) =
        (Arc::new(TokenReviewCache::default()), Arc::new(TokenTrust::new(TokenKeys::default(), true)));
    reviews.review(&trust, TOKEN, IpAddr::V4(Ipv4Addr::LOCALHOST), &AcceptAll).await?;
    let chain = AuthenticatorChain::default().with_reviews(reviews).with_token_trust(trust);
    let authorization = format!("Bearer {TOKEN}");
    let credentials = Credentials {
        authorization: Some(authorization.as_bytes()),
        websocket_protocols: None,
        peer: None,
        headers: &NoHeaders,
        path: None,
    };
    if !matches!(chain.authenticate(&credentials).outcome, AuthnOutcome::Authenticated(..)) {
        return Err("the token is not known".into());
    }
    let each = per_second(|| {
        black_box(chain.authenticate(black_box(&credentials)));
    });
    report.add(NAME, "checks of a cached token, on one thread", each, "/s", Goal::AtLeast(CHECKS));
    Ok(())
}

/// Measures the number of calls per second.
fn per_second(mut work: impl FnMut()) -> f64 {
    const BATCH: u32 = 1_000;
    let (start, mut done) = (Instant::now(), 0.0);
    while start.elapsed() < TIME {
        (0..BATCH).for_each(|_| work());
        done += f64::from(BATCH);
    }
    done / start.elapsed().as_secs_f64()
}

/// Returns bindings of [`BINDINGS`] users to one role.
fn policy() -> Policy {
    let key = |resource, name: String| Key { resource, namespace: String::new(), name };
    let text = |text: &str| vec![text.to_owned()];
    let mut policy = Policy::default();
    let rule = Rule {
        verbs: text("get"),
        api_groups: vec![String::new()],
        resources: text("configmaps"),
        ..Rule::default()
    };
    policy.set(key(Resource::ClusterRoles, "chain".to_owned()), Some(Fact::Rules(vec![rule])));
    for at in 0..BINDINGS {
        let role = RoleRef { is_cluster_role: true, name: "chain".to_owned() };
        let binding = Binding { role, subjects: vec![Subject::User(format!("user-{at}"))] };
        policy.set(key(Resource::ClusterRoleBindings, format!("chain-{at}")), Some(Fact::Binding(binding)));
    }
    policy
}

fn request() -> RequestInfo {
    RequestInfo {
        is_resource_request: true,
        verb: "get".to_owned(),
        api_version: "v1".to_owned(),
        namespace: "default".to_owned(),
        resource: "configmaps".to_owned(),
        name: "one".to_owned(),
        ..RequestInfo::default()
    }
}

/// Reviewer that accepts every token.
struct AcceptAll;

impl TokenReviewBackend for AcceptAll {
    fn review<'a>(&'a self, _token: &'a str) -> TokenReviewFuture<'a> {
        Box::pin(async { Ok(Ok(UserInfo::new("bench", ["system:authenticated"]))) })
    }
}
