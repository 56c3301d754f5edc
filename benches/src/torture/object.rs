//! The objects of a run: ConfigMaps whose data is a [`Content`].

use std::collections::BTreeMap;

use serde::Deserialize;

use super::history::{Content, Patch, State};
use super::watch_record::ListedStates;
use crate::Failure;

/// Namespace of the objects, in which only this run writes.
pub(crate) const NAMESPACE: &str = "torture";
/// Path of the collection.
pub(crate) const COLLECTION: &str = "/api/v1/namespaces/torture/configmaps";
/// Prefix of the keys of marks.
const MARK_PREFIX: &str = "mark-";

/// A decoded ConfigMap.
#[derive(Deserialize)]
pub(crate) struct Object {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    items: Vec<Object>,
}

impl Object {
    /// Returns name and state; `None` for objects of other writers, such as `kube-root-ca.crt`.
    pub(crate) fn state(mut self) -> Result<Option<(String, State)>, Failure> {
        let Some(group) = self.metadata.labels.remove("group") else { return Ok(None) };
        let number = |text: Option<&String>| -> Result<u64, Failure> {
            Ok(text.ok_or("an object was not written by this bench")?.parse()?)
        };
        let marks = self.data.iter().filter_map(|(key, value)| Some((key.strip_prefix(MARK_PREFIX)?, value)));
        let marks = marks.map(|(key, value)| Ok((key.to_owned(), value.parse()?)));
        let content = Content {
            writer: number(self.data.get("writer"))?,
            count: number(self.data.get("count"))?,
            marks: marks.collect::<Result<_, Failure>>()?,
            group,
        };
        let revision = self.revision()?;
        Ok(Some((self.metadata.name, State { uid: self.metadata.uid, revision, content })))
    }

    /// Returns the resourceVersion.
    pub(crate) fn revision(&self) -> Result<u64, Failure> {
        Ok(self.metadata.resource_version.parse()?)
    }
}

/// Decodes the state in a response body.
pub(crate) fn state(body: &[u8]) -> Result<State, Failure> {
    Ok(serde_json::from_slice::<Object>(body)?.state()?.ok_or("an object has lost its label")?.1)
}

/// Decodes the list in a response body.
pub(crate) fn list(body: &[u8]) -> Result<ListedStates, Failure> {
    let list: List = serde_json::from_slice(body)?;
    let states = list.items.into_iter().filter_map(|item| item.state().transpose());
    let states = states.collect::<Result<_, _>>()?;
    Ok(ListedStates { revision: list.metadata.resource_version.parse()?, states })
}

/// Decodes the uid in the Status of a deletion.
pub(crate) fn deleted_uid(body: &[u8]) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Status {
        details: Details,
    }
    #[derive(Deserialize)]
    struct Details {
        uid: String,
    }
    Ok(serde_json::from_slice::<Status>(body)?.details.uid)
}

/// Encodes an object to create, or, with a revision, to replace.
pub(crate) fn encode(name: &str, content: &Content, revision: Option<u64>) -> String {
    let revision = revision.map_or_else(String::new, |it| format!(r#","resourceVersion":"{it}""#));
    let marks: String =
        content.marks.iter().map(|(key, value)| format!(r#","{MARK_PREFIX}{key}":"{value}""#)).collect();
    let Content { writer, count, group, .. } = content;
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"group":"{group}"}}{revision}}},"data":{{"writer":"{writer}","count":"{count}"{marks}}}}}"#
    )
}

/// Encodes a merge patch.
pub(crate) fn patch(patch: &Patch) -> String {
    let Patch { writer, mark, group } = patch;
    let labels = group
        .as_ref()
        .map_or_else(String::new, |group| format!(r#""metadata":{{"labels":{{"group":"{group}"}}}},"#));
    format!(r#"{{{labels}"data":{{"writer":"{writer}","{MARK_PREFIX}{mark}":"{writer}"}}}}"#)
}

/// Encodes the options of a deletion.
pub(crate) fn delete_options(uid: Option<&str>) -> String {
    uid.map_or_else(String::new, |uid| {
        format!(r#"{{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{{"uid":"{uid}"}}}}"#)
    })
}
