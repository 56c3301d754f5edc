//! Rules and selectors together: which requests a webhook, a policy or a binding is about.

use std::sync::Arc;

use portico_machinery::Cursor;
use portico_registry::{Objects, Result, ServedResource};

use super::rules::Rule;
use super::selectors::Selectors;
use super::target::{MatchTarget, Pair};

/// See the module.
#[derive(Debug)]
pub(crate) struct Constraints {
    /// Nothing where all requests match that are not excluded.
    rules: Option<Box<[Rule]>>,
    excluded: Box<[Rule]>,
    /// Whether a rule also matches requests for other versions of its resource.
    equivalent: bool,
    selectors: Selectors,
}

/// In which version a request matches; its own where none is named.
#[derive(Clone)]
pub(crate) struct MatchedAs(pub(crate) Option<Arc<ServedResource>>);

impl MatchedAs {
    /// The version of the resource, which is the request's own or another.
    pub(crate) fn served<'s>(&'s self, target: &MatchTarget<'s>) -> &'s ServedResource {
        self.0.as_deref().unwrap_or(target.attributes.served)
    }
}

impl Constraints {
    /// Those of a webhook: a webhook without rules is about nothing.
    pub(crate) fn of_webhook(webhook: &Cursor<'_>) -> Self {
        Self {
            rules: Some(rules(&webhook.field("rules"))),
            excluded: Box::default(),
            equivalent: webhook.field("matchPolicy").str() == "Equivalent",
            selectors: Selectors::read(webhook),
        }
    }

    /// Those of a policy or a binding, which have `MatchResources`.
    pub(crate) fn of_policy(resources: &Cursor<'_>) -> Self {
        let included = resources.field("resourceRules");
        Self {
            rules: (!included.is_empty()).then(|| rules(&included)),
            excluded: rules(&resources.field("excludeResourceRules")),
            equivalent: resources.field("matchPolicy").str() == "Equivalent",
            selectors: Selectors::read(resources),
        }
    }

    /// Whether the rules match a request, and in which version: without a look at its objects.
    pub(crate) fn match_rules(&self, objects: &Objects, target: &MatchTarget<'_>) -> Option<MatchedAs> {
        if self.find(&self.excluded, objects, target).is_some() {
            return None;
        }
        match &self.rules {
            Some(rules) => self.find(rules, objects, target),
            None => Some(MatchedAs(None)),
        }
    }

    /// Whether there is a selector that may leave out a request that the rules match.
    pub(crate) fn selects(&self) -> bool {
        self.selectors.are_selective()
    }

    /// Whether the selectors select a request that the rules match.
    ///
    /// # Errors
    /// 404 when its namespace is not there, 500 for a selector that cannot be used.
    pub(crate) async fn select(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        pair: Pair<'_>,
    ) -> Result<bool> {
        self.selectors.select(objects, target, pair).await
    }

    /// The request's own version comes first, then the rules in their order.
    fn find(&self, rules: &[Rule], objects: &Objects, target: &MatchTarget<'_>) -> Option<MatchedAs> {
        if rules.iter().any(|rule| rule.matches(target, target.attributes.served)) {
            return Some(MatchedAs(None));
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let equivalents = target.equivalents(objects);
        if equivalents.is_empty() {
            return None;
        }
        let of_rule = |rule: &Rule| {
            let found = equivalents.iter().find(|served| rule.matches(target, served));
            found.map(|served| MatchedAs(Some(Arc::clone(served))))
        };
        rules.iter().find_map(of_rule)
    }
}

fn rules(list: &Cursor<'_>) -> Box<[Rule]> {
    list.items().map(|rule| Rule::read(&rule)).collect()
}
