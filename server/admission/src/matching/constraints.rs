//! Match constraints of a webhook, a policy or a binding: rules and selectors.

use std::sync::Arc;

use portico_machinery::Cursor;
use portico_registry::{Objects, Result, ServedResource};

use super::rules::Rule;
use super::selectors::Selectors;
use super::target::{MatchTarget, ObjectPair};

/// Match constraints.
#[derive(Debug)]
pub(crate) struct Constraints {
    /// `None` if all requests match that are not excluded.
    rules: Option<Box<[Rule]>>,
    excluded: Box<[Rule]>,
    /// True if a rule also matches requests for other versions of its resource.
    equivalent: bool,
    selectors: Selectors,
}

/// Version in which a request matches. `None` means the version of the request.
#[derive(Clone)]
pub(crate) struct MatchedVersion(pub(crate) Option<Arc<ServedResource>>);

impl MatchedVersion {
    /// Returns the resource in the matched version.
    pub(crate) fn served<'s>(&'s self, target: &MatchTarget<'s>) -> &'s ServedResource {
        self.0.as_deref().unwrap_or(target.attributes.served_resource)
    }
}

impl Constraints {
    /// Reads the constraints of a webhook. A webhook without rules matches nothing.
    pub(crate) fn of_webhook(webhook: &Cursor<'_>) -> Self {
        Self {
            rules: Some(rules(&webhook.field("rules"))),
            excluded: Box::default(),
            equivalent: webhook.field("matchPolicy").str() == "Equivalent",
            selectors: Selectors::read(webhook),
        }
    }

    /// Reads the constraints of a policy or a binding, which have `MatchResources`.
    pub(crate) fn of_policy(resources: &Cursor<'_>) -> Self {
        let included = resources.field("resourceRules");
        Self {
            rules: (!included.is_empty()).then(|| rules(&included)),
            excluded: rules(&resources.field("excludeResourceRules")),
            equivalent: resources.field("matchPolicy").str() == "Equivalent",
            selectors: Selectors::read(resources),
        }
    }

    /// Compares the rules with a request, without its objects. Returns the matched version, or `None` if the rules do not match.
    pub(crate) fn match_rules(&self, objects: &Objects, target: &MatchTarget<'_>) -> Option<MatchedVersion> {
        if self.find(&self.excluded, objects, target).is_some() {
            return None;
        }
        match &self.rules {
            Some(rules) => self.find(rules, objects, target),
            None => Some(MatchedVersion(None)),
        }
    }

    /// True if a selector may exclude a request that the rules match.
    pub(crate) fn has_selectors(&self) -> bool {
        self.selectors.can_exclude()
    }

    /// True if the selectors match a request that the rules match.
    ///
    /// # Errors
    /// 404 if the namespace does not exist, 500 if a selector is invalid.
    pub(crate) async fn match_selectors(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        pair: ObjectPair<'_>,
    ) -> Result<bool> {
        self.selectors.match_request(objects, target, pair).await
    }

    /// Finds a matching rule: the version of the request is compared first, then the other versions in the order of the rules.
    fn find(&self, rules: &[Rule], objects: &Objects, target: &MatchTarget<'_>) -> Option<MatchedVersion> {
        if rules.iter().any(|rule| rule.matches(target, target.attributes.served_resource)) {
            return Some(MatchedVersion(None));
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
            found.map(|served| MatchedVersion(Some(Arc::clone(served))))
        };
        rules.iter().find_map(of_rule)
    }
}

fn rules(list: &Cursor<'_>) -> Box<[Rule]> {
    list.items().map(|rule| Rule::read(&rule)).collect()
}
