//! Selectors of namespaces and objects by labels (upstream's `namespace.Matcher` and `object.Matcher`).

use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, GroupResource, Object, Status};
use portico_registry::{Objects, Operation, Result};

use super::target::{MatchTarget, Pair};

/// Parsed label selector.
#[derive(Debug)]
enum Selector {
    Everything,
    Some(LabelSelector),
    /// Error of a selector that cannot be used.
    Unusable(Box<str>),
}

/// Namespace selector and object selector.
#[derive(Debug)]
pub(super) struct Selectors {
    namespaces: Selector,
    objects: Selector,
}

impl Selector {
    fn read(selector: &Cursor<'_>) -> Self {
        match LabelSelector::of_object(selector) {
            Ok(None) => Self::Everything,
            Ok(Some(selector)) if selector.is_empty() => Self::Everything,
            Ok(Some(selector)) => Self::Some(selector),
            Err(error) => Self::Unusable(error.to_string().into()),
        }
    }

    /// Returns the selector; `None` if it selects everything.
    fn usable(&self) -> Result<Option<&LabelSelector>> {
        match self {
            Self::Everything => Ok(None),
            Self::Some(selector) => Ok(Some(selector)),
            Self::Unusable(why) => Err(Box::new(Status::internal(why))),
        }
    }
}

impl Selectors {
    /// Reads `namespaceSelector` and `objectSelector`.
    pub(super) fn read(of: &Cursor<'_>) -> Self {
        Self {
            namespaces: Selector::read(&of.field("namespaceSelector")),
            objects: Selector::read(&of.field("objectSelector")),
        }
    }

    /// True if at least one of the selectors does not select everything.
    pub(super) fn are_selective(&self) -> bool {
        [&self.namespaces, &self.objects]
            .into_iter()
            .any(|selector| !matches!(selector, Selector::Everything))
    }

    /// True if both selectors match a request.
    ///
    /// # Errors
    /// 404 if the namespace does not exist, 500 if it cannot be read or if a selector is invalid.
    pub(super) async fn select(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        pair: Pair<'_>,
    ) -> Result<bool> {
        Ok(self.selects_object(target, pair)? && self.selects_namespace(objects, target, pair).await?)
    }

    /// True if the namespace selector matches. Cluster-scoped objects other than namespaces always match.
    async fn selects_namespace(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        pair: Pair<'_>,
    ) -> Result<bool> {
        if target.namespace.is_empty() && !target.is_of_namespaces() {
            return Ok(true);
        }
        let Some(selector) = self.namespaces.usable()? else { return Ok(true) };
        if let Some(namespace) = pair.new.filter(|_| target.carries_namespace_labels()) {
            return Ok(matches(selector, namespace));
        }
        let resource = GroupResource::new("", "namespaces");
        let served = objects.served(&resource)?;
        match objects.read(&served, "", target.namespace).await? {
            Some(record) => Ok(selector.matches(record.value.indexed().label_entries())),
            None => Err(Box::new(Status::not_found(&resource, target.namespace))),
        }
    }

    /// True if the object selector matches. Connect options have no labels, so no selector matches them.
    fn selects_object(&self, target: &MatchTarget<'_>, pair: Pair<'_>) -> Result<bool> {
        let Some(selector) = self.objects.usable()? else { return Ok(true) };
        let labelled = target.attributes.operation != Operation::Connect;
        let mut both = [pair.new, pair.old].into_iter().flatten();
        Ok(labelled && both.any(|object| matches(selector, object)))
    }
}

fn matches(selector: &LabelSelector, object: &Object) -> bool {
    selector.matches(object.label_entries())
}
