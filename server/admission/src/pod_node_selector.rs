//! PodNodeSelector: pods of a namespace run on the nodes that its annotation or the configuration selects.
//!
//! Upstream rules: plugin/pkg/admission/podnodeselector.

mod configuration;

use std::collections::BTreeMap;

use portico_machinery::status::Reason;
use portico_machinery::{Object, Status, names};
use portico_registry::{Attributes, Objects, Operation, Result};

use crate::plugin::{
    MutationFuture, MutationRequest, PODS, Plugin, ResourcePattern, ValidationFuture, ValidationRequest,
};
pub(crate) use configuration::PodNodeSelectorConfiguration;

/// Annotation with the node selector of a namespace.
const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
/// Key in the configuration of the selector of namespaces that have none.
const DEFAULT: &str = "clusterDefaultNodeSelector";
const CONFLICT: &str = "pod node label selector conflicts with its namespace node label selector";
const NOT_ALLOWED: &str = "pod node label selector labels conflict with its namespace whitelist";

type Labels = BTreeMap<String, String>;

/// PodNodeSelector plugin.
pub(crate) struct PodNodeSelector {
    configuration: PodNodeSelectorConfiguration,
}

impl PodNodeSelector {
    pub(crate) fn new(configuration: &PodNodeSelectorConfiguration) -> Self {
        Self { configuration: configuration.clone() }
    }

    /// Returns the node selector of the namespace of a request.
    async fn namespace_selector(&self, objects: &Objects, namespace: &str) -> Result<Labels> {
        let Some(found) = objects.object_of("", "namespaces", "", namespace).await? else {
            return Err(Box::new(Status::internal(format!("namespace {namespace} does not exist"))));
        };
        let selector = found.annotation(ANNOTATION).unwrap_or_else(|| self.configured_selector(DEFAULT));
        parse_labels(selector).map_err(selector_error)
    }

    fn configured_selector(&self, name: &str) -> &str {
        self.configuration.selectors.get(name).map_or("", String::as_str)
    }

    /// Refuses a pod whose selector the namespace does not allow.
    fn check(&self, attributes: &Attributes<'_>, selected: &Labels, pod: &Object) -> Result<()> {
        let pod_selector = pod_labels(pod);
        let refuse =
            |message| Box::new(Status::forbidden(&attributes.served_resource.resource, pod.name(), message));
        if has_conflict(selected, &pod_selector) {
            return Err(refuse(CONFLICT));
        }
        let allowed = parse_labels(self.configured_selector(attributes.namespace)).map_err(selector_error)?;
        let is_allowed = |(key, value): (&String, &String)| allowed.get(key) == Some(value);
        if !allowed.is_empty() && !pod_selector.iter().all(is_allowed) {
            return Err(refuse(NOT_ALLOWED));
        }
        Ok(())
    }
}

impl Plugin for PodNodeSelector {
    fn targets(&self) -> &'static [ResourcePattern] {
        PODS
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, request: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let MutationRequest { attributes, new, .. } = request;
            let selected = self.namespace_selector(objects, attributes.namespace).await?;
            if !has_conflict(&selected, &pod_labels(new)) {
                for (key, value) in &selected {
                    new.set(&["spec", "nodeSelector", key], value);
                }
            }
            self.check(&attributes, &selected, new)
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let selected = self.namespace_selector(objects, request.attributes.namespace).await?;
            self.check(&request.attributes, &selected, request.new)?;
            Ok(Vec::new())
        })
    }
}

fn pod_labels(pod: &Object) -> Labels {
    let selector = pod.at(&["spec", "nodeSelector"]);
    selector.entries().map(|(key, value)| (key.to_owned(), value.str().to_owned())).collect()
}

/// True if a label has different values in the two maps.
fn has_conflict(first: &Labels, second: &Labels) -> bool {
    first.iter().any(|(key, value)| second.get(key).is_some_and(|other| other != value))
}

/// Returns 500 for an invalid selector, as upstream does.
fn selector_error(message: String) -> Box<Status> {
    Box::new(Status::failure(Reason::Unknown, message))
}

/// Parses the labels of a selector such as `a=b,c=d` (upstream's `ConvertSelectorToLabelsMap`).
fn parse_labels(selector: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    if selector.is_empty() {
        return Ok(labels);
    }
    for label in selector.split(',') {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts[..] else {
            return Err(format!("invalid selector: [{}]", parts.join(" ")));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |at: &str, rule: &str, diagnostics: &[String]| {
            Err(format!("{at}: Invalid value: {rule:?}: {}", diagnostics.join("; ")))
        };
        let (of_key, of_value) = (names::qualified_name(key), names::label_value(value));
        if !of_key.is_empty() {
            return wrong("<nil>", key, &of_key);
        }
        if !of_value.is_empty() {
            return wrong(&format!("[{key}]"), value, &of_value);
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_parsed_as_upstream_parses_them() {
        let read = |text| parse_labels(text).map(|labels| format!("{labels:?}"));
        for (text, labels) in [
            ("", "{}"),
            ("a=b", r#"{"a": "b"}"#),
            (" a = b ,x.io/c=", r#"{"a": "b", "x.io/c": ""}"#),
            ("a=b,a=c", r#"{"a": "c"}"#),
        ] {
            assert_eq!(read(text), Ok(labels.to_owned()), "{text}");
        }
        for (text, error) in [
            ("a in b", "invalid selector: [a in b]"),
            ("a==b", "invalid selector: [a  b]"),
            ("a=b,", "invalid selector: []"),
            (
                "-=b",
                "<nil>: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
            (
                "a=-",
                "[a]: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
        ] {
            assert_eq!(read(text), Err(error.to_owned()), "{text}");
        }
    }
}
