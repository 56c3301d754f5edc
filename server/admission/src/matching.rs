//! Matching of requests by webhooks, policies and bindings (upstream's `matching.Matcher` and `generic.Webhook.ShouldCallHook`).

mod constraints;
mod rule_matches;
mod rules;
mod selectors;
mod target;

pub(crate) use constraints::{Constraints, MatchedVersion};
pub(crate) use rule_matches::{HasConstraints, HookSource, LazyTarget, RuleMatch, RuleMatches};
pub(crate) use target::{MatchTarget, ObjectPair};
