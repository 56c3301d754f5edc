//! Matching of requests by webhooks, policies and bindings (upstream's `matching.Matcher` and `generic.Webhook.ShouldCallHook`).

mod concern;
mod constraints;
mod rules;
mod selectors;
mod target;

pub(crate) use concern::{Concern, Configured, Constrained, LazyTarget, Match};
pub(crate) use constraints::{Constraints, MatchedAs};
pub(crate) use target::{MatchTarget, Pair};
