//! Selectors of namespaces and objects by labels (upstream's `namespace.Matcher` and `object.Matcher`).

use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, GroupResource, Object, Status};
use portico_registry::{Objects, Operation, Result};

use super::target::{MatchTarget, ObjectPair};

/// Parsed label selector.
#[derive(Debug)]
enum Selector {
    Everything,
    Labels(LabelSelector),
    /// Error of a selector that cannot be used.
    Invalid(Box<str>),
}

/// Namespace selector and object selector.
#[derive(Debug)]
pub(super) struct Selectors {
    namespaces: Selector,
    objects: Selector,
}

impl Selector {
    fn read(selector: &Cursor<'_>) -> Self {
        match LabelSelector::from_object(selector) {
            Ok(None) => Self::Everything,
            Ok(Some(selector)) if selector.is_empty() => Self::Everything,
            Ok(Some(selector)) => Self::Labels(selector),
            Err(error) => Self::Invalid(error.to_string().into()),
        }
    }

    /// Returns the selector; `None` if it selects everything.
    fn label_selector(&self) -> Result<Option<&LabelSelector>> {
        match self {
            Self::Everything => Ok(None),
            Self::Labels(selector) => Ok(Some(selector)),
            Self::Invalid(message) => Err(Box::new(Status::internal(message))),
        }
    }
}

impl Selectors {
    /// Reads `namespaceSelector` and `objectSelector`.
    pub(super) fn read(constraints: &Cursor<'_>) -> Self {
        Self {
            namespaces: Selector::read(&constraints.field("namespaceSelector")),
            objects: Selector::read(&constraints.field("objectSelector")),
        }
    }

    /// True if at least one of the selectors does not select everything.
    pub(super) fn can_exclude(&self) -> bool {
        [&self.namespaces, &self.objects]
            .into_iter()
            .any(|selector| !matches!(selector, Selector::Everything))
    }

    /// True if both selectors match a request.
    ///
    /// # Errors
    /// 404 if the namespace does not exist, 500 if it cannot be read or if a selector is invalid.
    pub(super) async fn match_request(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        pair: ObjectPair<'_>,
    ) -> Result<bool> {
        Ok(self.selects_object(target, pair)? && self.selects_namespace(objects, target, pair).await?)
    }

    /// True if the namespace selector matches. Cluster-scoped objects other than namespaces always match.
    async fn selects_namespace(
        &self,
        objects: &Objects,
        target: &MatchTarget<'_>,
        pair: ObjectPair<'_>,
    ) -> Result<bool> {
        if target.namespace.is_empty() && !target.targets_namespaces() {
            return Ok(true);
        }
        let Some(selector) = self.namespaces.label_selector()? else { return Ok(true) };
        if let Some(namespace) = pair.new.filter(|_| target.carries_namespace_labels()) {
            return Ok(matches(selector, namespace));
        }
        let resource = GroupResource::new("", "namespaces");
        let served = objects.served_resource(&resource)?;
        match objects.read(&served, "", target.namespace).await? {
            Some(record) => Ok(selector.matches(record.value.indexed().label_entries())),
            None => Err(Box::new(Status::not_found(&resource, target.namespace))),
        }
    }

    /// True if the object selector matches. Connect options have no labels, so no selector matches them.
    fn selects_object(&self, target: &MatchTarget<'_>, pair: ObjectPair<'_>) -> Result<bool> {
        let Some(selector) = self.objects.label_selector()? else { return Ok(true) };
        let has_labels = target.attributes.operation != Operation::Connect;
        let mut objects = [pair.new, pair.old].into_iter().flatten();
        Ok(has_labels && objects.any(|object| matches(selector, object)))
    }
}

fn matches(selector: &LabelSelector, object: &Object) -> bool {
    selector.matches(object.label_entries())
}
