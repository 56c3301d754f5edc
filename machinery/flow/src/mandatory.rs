//! Mandatory levels and schemas, used if their objects are missing: every request matches a schema, and masters are exempt.

use std::sync::Arc;

use portico_machinery::flow_control::{
    CATCH_ALL, Distinguisher, EXEMPT, FlowSchema, LimitResponse, NonResourceRule, PolicyRules, PriorityLevel,
    ResourceRule,
};
use portico_machinery::rbac::Subject;
use portico_machinery::user::{AUTHENTICATED, MASTERS, UNAUTHENTICATED};

pub(crate) fn exempt_level() -> Arc<PriorityLevel> {
    level(EXEMPT, 0, LimitResponse::Exempt)
}

pub(crate) fn catch_all_level() -> Arc<PriorityLevel> {
    level(CATCH_ALL, 5, LimitResponse::Reject)
}

pub(crate) fn exempt_schema() -> Arc<FlowSchema> {
    schema(EXEMPT, 1, Distinguisher::SingleFlow, &[MASTERS])
}

pub(crate) fn catch_all_schema() -> Arc<FlowSchema> {
    schema(CATCH_ALL, 10_000, Distinguisher::ByUser, &[UNAUTHENTICATED, AUTHENTICATED])
}

fn level(name: &str, shares: u32, response: LimitResponse) -> Arc<PriorityLevel> {
    let (name, uid) = (name.to_owned(), String::new());
    Arc::new(PriorityLevel {
        name,
        uid,
        shares,
        lendable_percent: 0,
        borrowing_limit_percent: None,
        response,
    })
}

fn schema(name: &str, precedence: i32, distinguisher: Distinguisher, groups: &[&str]) -> Arc<FlowSchema> {
    let all = || vec!["*".to_owned()];
    let resource_rule = ResourceRule {
        verbs: all(),
        api_groups: all(),
        resources: all(),
        cluster_scope: true,
        namespaces: all(),
    };
    let rules = PolicyRules {
        subjects: groups.iter().map(|group| Subject::Group((*group).to_owned())).collect(),
        resource_rules: vec![resource_rule],
        non_resource_rules: vec![NonResourceRule { verbs: all(), urls: all() }],
    };
    Arc::new(FlowSchema {
        name: name.to_owned(),
        uid: String::new(),
        precedence,
        level: name.to_owned(),
        distinguisher,
        rules: vec![rules],
    })
}
