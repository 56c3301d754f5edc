//! Webhooks and policies whose rules match a request, as far as they are known without waiting.
//!
//! Most requests match no rule. They cost one comparison per rule, and no work if no webhook or policy is configured.

use std::sync::{Arc, OnceLock};

use portico_registry::{Attributes, Objects, Result};

use super::constraints::{Constraints, MatchedVersion};
use super::target::MatchTarget;
use crate::listing::not_ready;

/// Item that has match constraints: a webhook or a policy.
pub(crate) trait HasConstraints {
    /// Returns the constraints on the requests that the item matches.
    fn constraints(&self) -> &Constraints;
}

/// Source of all webhooks of one kind, or of all policies of one kind.
pub(crate) trait HookSource {
    /// Type of the items.
    type Item: HasConstraints + 'static;
    /// Type of the set of all items at one revision.
    type HookSet;

    /// Returns the current set, or `None` if reading it requires waiting.
    fn cached(&self, objects: &Objects) -> Option<Self::HookSet>;

    /// Reads the current set.
    ///
    /// # Errors
    /// The set cannot be read.
    fn load(&self, objects: &Objects) -> impl Future<Output = Result<Self::HookSet>> + Send;

    /// Returns the items of a set in the order of evaluation.
    fn items(all: &Self::HookSet) -> impl Iterator<Item = &Arc<Self::Item>>;

    /// Names the items that cannot be read and have no earlier state in force; `None` if there are none.
    fn problem(all: &Self::HookSet) -> Option<&str>;
}

/// Item whose rules match a request.
pub(crate) struct RuleMatch<T> {
    /// Position among all items.
    pub(crate) index: usize,
    pub(crate) item: Arc<T>,
    /// Version in which the item receives the request.
    pub(crate) version: MatchedVersion,
}

/// Description of a request for the comparison with rules. It is created only when a rule is compared, because it copies names.
pub(crate) struct LazyTarget<'a> {
    attributes: Attributes<'a>,
    cost_limit: u64,
    target: OnceLock<Option<MatchTarget<'a>>>,
}

/// Items of one source whose rules match a request.
pub(crate) struct RuleMatches<'a, C: HookSource> {
    pub(crate) source: &'a C,
    /// `None` if reading the items requires waiting, or some of them cannot be read.
    matches: Option<Vec<RuleMatch<C::Item>>>,
}

impl<'a> LazyTarget<'a> {
    /// Describes a request on demand. `cost_limit` is the budget of all expressions about the request.
    pub(crate) fn new(attributes: Attributes<'a>, cost_limit: u64) -> Self {
        Self { attributes, cost_limit, target: OnceLock::new() }
    }

    /// Returns the description; `None` for a request that no webhook and no policy may receive.
    pub(crate) fn get(&self) -> Option<&MatchTarget<'a>> {
        self.target.get_or_init(|| MatchTarget::new(self.attributes, self.cost_limit)).as_ref()
    }

    /// Returns the description if a rule was already compared with the request.
    pub(crate) fn get_if_described(&self) -> Option<&MatchTarget<'a>> {
        self.target.get()?.as_ref()
    }
}

impl<'a, C: HookSource> RuleMatches<'a, C> {
    /// Compares the rules of a source with a request; `None` if it is known that no rule matches.
    pub(crate) fn find(source: &'a C, objects: &Objects, target: &LazyTarget<'_>) -> Option<Self> {
        let valid = source.cached(objects).filter(|all| C::problem(all).is_none());
        let Some(all) = valid else { return Some(Self { source, matches: None }) };
        // Nothing is configured, so the request need not be described.
        C::items(&all).next()?;
        let found = find_matches::<C>(&all, objects, target.get()?);
        (!found.is_empty()).then_some(Self { source, matches: Some(found) })
    }

    /// Returns the items whose rules match, in order.
    ///
    /// # Errors
    /// The items cannot be read; 403 if only some of them cannot.
    pub(crate) async fn matches(
        self,
        objects: &Objects,
        target: &MatchTarget<'_>,
    ) -> Result<Vec<RuleMatch<C::Item>>> {
        if let Some(found) = self.matches {
            return Ok(found);
        }
        let all = self.source.load(objects).await?;
        match C::problem(&all) {
            Some(problem) => Err(not_ready(&target.attributes, problem)),
            None => Ok(find_matches::<C>(&all, objects, target)),
        }
    }
}

fn find_matches<C: HookSource>(
    all: &C::HookSet,
    objects: &Objects,
    target: &MatchTarget<'_>,
) -> Vec<RuleMatch<C::Item>> {
    let matching = C::items(all).enumerate().filter_map(|(index, item)| {
        let version = item.constraints().match_rules(objects, target)?;
        Some(RuleMatch { index, item: Arc::clone(item), version })
    });
    matching.collect()
}
