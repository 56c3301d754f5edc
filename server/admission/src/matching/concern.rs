//! Which of what is configured concern a request by their rules, as far as that is known without waiting.
//!
//! Most requests concern nothing: they cost one look at each rule, and nothing where nothing is configured.

use std::sync::{Arc, OnceLock};

use portico_registry::{Attributes, Objects, Result};

use super::constraints::{Constraints, MatchedAs};
use super::target::MatchTarget;
use crate::listing::not_ready;

/// What is configured with constraints: a webhook, a policy.
pub(crate) trait Constrained {
    /// Which requests it is about.
    fn constraints(&self) -> &Constraints;
}

/// All webhooks of a kind, or all policies.
pub(crate) trait Configured {
    /// One of them.
    type Item: Constrained + 'static;
    /// All of them at one moment.
    type All;

    /// All that there are now, if that is known without waiting.
    fn known(&self, objects: &Objects) -> Option<Self::All>;

    /// All that there are now.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&self, objects: &Objects) -> impl Future<Output = Result<Self::All>> + Send;

    /// One after another, in the order in which they are asked.
    fn items(all: &Self::All) -> impl Iterator<Item = &Arc<Self::Item>>;

    /// Names those that cannot be read and are not among the items, if there are any.
    fn problem(all: &Self::All) -> Option<&str>;
}

/// One whose rules match a request.
pub(crate) struct Match<T> {
    /// Its place among all.
    pub(crate) index: usize,
    pub(crate) item: Arc<T>,
    /// The version in which it sees the request.
    pub(crate) version: MatchedAs,
}

/// A request as rules are compared with it, described once something is configured: that copies names.
pub(crate) struct LazyTarget<'a> {
    attributes: Attributes<'a>,
    cost_limit: u64,
    described: OnceLock<Option<MatchTarget<'a>>>,
}

/// Those of a kind that concern a request.
pub(crate) struct Concern<'a, C: Configured> {
    pub(crate) configured: &'a C,
    /// `None` if it takes a wait to know them, or some cannot be read.
    known: Option<Vec<Match<C::Item>>>,
}

impl<'a> LazyTarget<'a> {
    /// A request; expressions about it may cost so much together.
    pub(crate) fn new(attributes: Attributes<'a>, cost_limit: u64) -> Self {
        Self { attributes, cost_limit, described: OnceLock::new() }
    }

    /// Nothing for a request that no webhook and no policy is asked about.
    pub(crate) fn get(&self) -> Option<&MatchTarget<'a>> {
        self.described.get_or_init(|| MatchTarget::new(self.attributes, self.cost_limit)).as_ref()
    }

    /// The request, where something configured was compared with it.
    pub(crate) fn described(&self) -> Option<&MatchTarget<'a>> {
        self.described.get()?.as_ref()
    }
}

impl<'a, C: Configured> Concern<'a, C> {
    /// Nothing where it is known that none is concerned.
    pub(crate) fn of(configured: &'a C, objects: &Objects, target: &LazyTarget<'_>) -> Option<Self> {
        let known = configured.known(objects).filter(|all| C::problem(all).is_none());
        let Some(all) = known else { return Some(Self { configured, known: None }) };
        // Nothing is configured: the request need not be described.
        C::items(&all).next()?;
        let found = matching::<C>(&all, objects, target.get()?);
        (!found.is_empty()).then_some(Self { configured, known: Some(found) })
    }

    /// Those whose rules match, in order.
    ///
    /// # Errors
    /// They cannot be read; 403 if some of them cannot.
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
