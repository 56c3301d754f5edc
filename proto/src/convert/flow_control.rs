//! Conversion of flow schemas and priority levels.

use std::sync::Arc;

use portico_machinery::flow_control::{
    Distinguisher, Fact, FlowSchema, Key, LimitResponse, NonResourceRule, PolicyRules, PriorityLevel,
    Queuing, ResourceRule,
};

use super::rbac::{subject_from_proto, subject_to_proto};
use crate::config as pb;
use pb::flow_control::Says;
use pb::priority_level::Response as Does;

pub(super) fn to_proto(fact: &Fact) -> pb::FlowControl {
    let says = match fact {
        Fact::Schema(schema) => Says::Schema(pb::FlowSchema {
            uid: schema.uid.clone(),
            precedence: schema.precedence,
            level: schema.level.clone(),
            distinguisher: distinguisher_to_proto(schema.distinguisher).into(),
            rules: schema.rules.iter().map(rules_to_proto).collect(),
        }),
        Fact::Level(level) => Says::Level(pb::PriorityLevel {
            uid: level.uid.clone(),
            shares: level.shares,
            lendable_percent: level.lendable_percent,
            borrowing_limit_percent: level.borrowing_limit_percent,
            response: Some(response_to_proto(level.response)),
        }),
    };
    pb::FlowControl { says: Some(says) }
}

/// Converts a message; `None` if it is incomplete or its key is invalid. Subjects unknown to this build are omitted.
pub(super) fn from_proto(key: &str, message: pb::FlowControl) -> Option<Fact> {
    let name = key.parse::<Key>().ok()?.name;
    Some(match message.says? {
        Says::Schema(schema) => Fact::Schema(Arc::new(FlowSchema {
            name,
            distinguisher: distinguisher_from_proto(schema.distinguisher()),
            uid: schema.uid,
            precedence: schema.precedence,
            level: schema.level,
            rules: schema.rules.into_iter().map(rules_from_proto).collect(),
        })),
        Says::Level(level) => Fact::Level(Arc::new(PriorityLevel {
            name,
            uid: level.uid,
            shares: level.shares,
            lendable_percent: level.lendable_percent,
            borrowing_limit_percent: level.borrowing_limit_percent,
            response: response_from_proto(level.response?),
        })),
    })
}

fn distinguisher_to_proto(distinguisher: Distinguisher) -> pb::FlowDistinguisher {
    match distinguisher {
        Distinguisher::SingleFlow => pb::FlowDistinguisher::Unspecified,
        Distinguisher::ByUser => pb::FlowDistinguisher::ByUser,
        Distinguisher::ByNamespace => pb::FlowDistinguisher::ByNamespace,
    }
}

fn distinguisher_from_proto(distinguisher: pb::FlowDistinguisher) -> Distinguisher {
    match distinguisher {
        pb::FlowDistinguisher::Unspecified => Distinguisher::SingleFlow,
        pb::FlowDistinguisher::ByUser => Distinguisher::ByUser,
        pb::FlowDistinguisher::ByNamespace => Distinguisher::ByNamespace,
    }
}

fn rules_to_proto(rules: &PolicyRules) -> pb::FlowRules {
    let resource_rule = |rule: &ResourceRule| pb::FlowResourceRule {
        verbs: rule.verbs.clone(),
        api_groups: rule.api_groups.clone(),
        resources: rule.resources.clone(),
        cluster_scope: rule.cluster_scope,
        namespaces: rule.namespaces.clone(),
    };
    let non_resource_rule = |rule: &NonResourceRule| pb::FlowNonResourceRule {
        verbs: rule.verbs.clone(),
        urls: rule.urls.clone(),
    };
    pb::FlowRules {
        subjects: rules.subjects.iter().map(subject_to_proto).collect(),
        resource_rules: rules.resource_rules.iter().map(resource_rule).collect(),
        non_resource_rules: rules.non_resource_rules.iter().map(non_resource_rule).collect(),
    }
}

fn rules_from_proto(rules: pb::FlowRules) -> PolicyRules {
    let resource_rule = |rule: pb::FlowResourceRule| ResourceRule {
        verbs: rule.verbs,
        api_groups: rule.api_groups,
        resources: rule.resources,
        cluster_scope: rule.cluster_scope,
        namespaces: rule.namespaces,
    };
    let non_resource_rule =
        |rule: pb::FlowNonResourceRule| NonResourceRule { verbs: rule.verbs, urls: rule.urls };
    PolicyRules {
        subjects: rules.subjects.into_iter().filter_map(subject_from_proto).collect(),
        resource_rules: rules.resource_rules.into_iter().map(resource_rule).collect(),
        non_resource_rules: rules.non_resource_rules.into_iter().map(non_resource_rule).collect(),
    }
}

fn response_to_proto(response: LimitResponse) -> Does {
    match response {
        LimitResponse::Exempt => Does::Exempt(true),
        LimitResponse::Reject => Does::Reject(true),
        LimitResponse::Queue(Queuing { queues, hand_size, queue_length_limit }) => {
            Does::Queuing(pb::Queuing { queues, hand_size, queue_length_limit })
        }
    }
}

fn response_from_proto(does: Does) -> LimitResponse {
    match does {
        Does::Exempt(_) => LimitResponse::Exempt,
        Does::Reject(_) => LimitResponse::Reject,
        Does::Queuing(pb::Queuing { queues, hand_size, queue_length_limit }) => {
            LimitResponse::Queue(Queuing { queues, hand_size, queue_length_limit })
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use portico_machinery::rbac::Subject;

    use super::*;

    /// One flow schema and one priority level with all fields set, and their keys.
    pub(crate) fn facts() -> [(&'static str, Fact); 2] {
        let list = |word: &str| vec![word.to_owned()];
        let resource_rule = ResourceRule {
            verbs: list("v"),
            api_groups: list(""),
            resources: list("r"),
            cluster_scope: true,
            namespaces: list("n"),
        };
        let schema = FlowSchema {
            name: "s".to_owned(),
            uid: "u".to_owned(),
            precedence: 7,
            level: "l".to_owned(),
            distinguisher: Distinguisher::ByNamespace,
            rules: vec![PolicyRules {
                subjects: vec![Subject::Group("g".to_owned())],
                resource_rules: vec![resource_rule],
                non_resource_rules: vec![NonResourceRule { verbs: list("v"), urls: list("/u") }],
            }],
        };
        let level = PriorityLevel {
            name: "l".to_owned(),
            uid: "u".to_owned(),
            shares: 3,
            lendable_percent: 4,
            borrowing_limit_percent: Some(0),
            response: LimitResponse::Queue(Queuing { queues: 8, hand_size: 2, queue_length_limit: 5 }),
        };
        [
            ("flowschemas/s", Fact::Schema(Arc::new(schema))),
            ("prioritylevelconfigurations/l", Fact::Level(Arc::new(level))),
        ]
    }
}
