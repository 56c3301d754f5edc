//! Selectors of namespaces and objects by their labels (upstream's `namespace.Matcher` and `object.Matcher`).

use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, GroupResource, Object, Status};
use portico_registry::{Objects, Operation, Result};

use super::target::{MatchTarget, Pair};

/// A label selector as it was read.
#[derive(Debug)]
enum Selector {
    Everything,
    Some(LabelSelector),
    /// Why it cannot be used.
    Unusable(Box<str>),
}

/// Both selectors.
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

    /// The selector, unless it selects everything.
    fn usable(&self) -> Result<Option<&LabelSelector>> {
        match self {
            Self::Everything => Ok(None),
            Self::Some(selector) => Ok(Some(selector)),
            Self::Unusable(why) => Err(Box::new(Status::internal(why))),
        }
    }
}

impl Selectors {
    /// Out of what has `namespaceSelector` and `objectSelector`.
    pub(super) fn read(of: &Cursor<'_>) -> Self {
        Self {
            namespaces: Selector::read(&of.field("namespaceSelector")),
            objects: Selector::read(&of.field("objectSelector")),
        }
    }

    /// Whether one of them does not select everything.
    pub(super) fn are_selective(&self) -> bool {
        [&self.namespaces, &self.objects]
            .into_iter()
            .any(|selector| !matches!(selector, Selector::Everything))
    }

    /// Whether both select a request.
    ///
    /// # Errors
    /// 404 when its namespace is not there, 500 for one that cannot be read and for a selector that cannot be used.
    pub(super) async fn select(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        pair: Pair<'_>,
    ) -> Result<bool> {
        Ok(self.selects_object(target, pair)? && self.selects_namespace(objects, target, pair).await?)
    }

    /// What is at cluster scope is selected, unless it is a namespace.
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

    /// The options of a connection have no labels, and are selected by none.
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
