//! Webhooks and policies whose rules match a request, as far as they are known without waiting.
//!
//! Most requests match no rule. They cost one comparison per rule, and no work if no webhook or policy is configured.

use std::sync::{Arc, OnceLock};

use portico_registry::{Attributes, Objects, Result};

use super::constraints::{Constraints, MatchedAs};
use super::target::MatchTarget;
use crate::listing::not_ready;

/// Item that has match constraints: a webhook or a policy.
pub(crate) trait Constrained {
    /// Returns the constraints on the requests that the item matches.
    fn constraints(&self) -> &Constraints;
}

/// Source of all webhooks of one kind, or of all policies of one kind.
pub(crate) trait Configured {
    /// Type of the items.
    type Item: Constrained + 'static;
    /// Type of the set of all items at one revision.
    type All;

    /// Returns the current set, or `None` if reading it requires waiting.
    fn known(&self, objects: &Objects) -> Option<Self::All>;

    /// Reads the current set.
    ///
    /// # Errors
    /// The set cannot be read.
    fn read(&self, objects: &Objects) -> impl Future<Output = Result<Self::All>> + Send;

    /// Returns the items of a set in the order of evaluation.
    fn items(all: &Self::All) -> impl Iterator<Item = &Arc<Self::Item>>;

    /// Names the items that cannot be read and have no earlier state in force; `None` if there are none.
    fn problem(all: &Self::All) -> Option<&str>;
}

/// Item whose rules match a request.
pub(crate) struct Match<T> {
    /// Position among all items.
    pub(crate) index: usize,
    pub(crate) item: Arc<T>,
    /// Version in which the item receives the request.
    pub(crate) version: MatchedAs,
}

/// Description of a request for the comparison with rules. It is created only when a rule is compared, because it copies names.
pub(crate) struct LazyTarget<'a> {
    attributes: Attributes<'a>,
    cost_limit: u64,
    described: OnceLock<Option<MatchTarget<'a>>>,
}

/// Items of one source whose rules match a request.
pub(crate) struct Concern<'a, C: Configured> {
    pub(crate) configured: &'a C,
    /// `None` if reading the items requires waiting, or some of them cannot be read.
    known: Option<Vec<Match<C::Item>>>,
}

impl<'a> LazyTarget<'a> {
    /// Describes a request on demand. `cost_limit` is the budget of all expressions about the request.
    pub(crate) fn new(attributes: Attributes<'a>, cost_limit: u64) -> Self {
        Self { attributes, cost_limit, described: OnceLock::new() }
    }

    /// Returns the description; `None` for a request that no webhook and no policy may receive.
    pub(crate) fn get(&self) -> Option<&MatchTarget<'a>> {
        self.described.get_or_init(|| MatchTarget::new(self.attributes, self.cost_limit)).as_ref()
    }

    /// Returns the description if a rule was already compared with the request.
    pub(crate) fn described(&self) -> Option<&MatchTarget<'a>> {
        self.described.get()?.as_ref()
    }
}

impl<'a, C: Configured> Concern<'a, C> {
    /// Compares the rules of a source with a request; `None` if it is known that no rule matches.
    pub(crate) fn of(configured: &'a C, objects: &Objects, target: &LazyTarget<'_>) -> Option<Self> {
        let known = configured.known(objects).filter(|all| C::problem(all).is_none());
        let Some(all) = known else { return Some(Self { configured, known: None }) };
        // Nothing is configured, so the request need not be described.
        C::items(&all).next()?;
        let found = matching::<C>(&all, objects, target.get()?);
        (!found.is_empty()).then_some(Self { configured, known: Some(found) })
    }

    /// Returns the items whose rules match, in order.
    ///
    /// # Errors
    /// The items cannot be read; 403 if only some of them cannot.
    pub(crate) async fn matches(
        self,
        objects: &Objects,
        target: &MatchTarget<'_>,
    ) -> Result<Vec<Match<C::Item>>> {
        if let Some(found) = self.known {
            return Ok(found);
        }
        let all = self.configured.read(objects).await?;
        match C::problem(&all) {
            Some(problem) => Err(not_ready(&target.attributes, problem)),
            None => Ok(matching::<C>(&all, objects, target)),
        }
    }
}

fn matching<C: Configured>(all: &C::All, objects: &Objects, target: &MatchTarget<'_>) -> Vec<Match<C::Item>> {
    let matching = C::items(all).enumerate().filter_map(|(index, item)| {
        let version = item.constraints().match_rules(objects, target)?;
        Some(Match { index, item: Arc::clone(item), version })
    });
    matching.collect()
}
