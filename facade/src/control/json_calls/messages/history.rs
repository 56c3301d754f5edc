//! The messages of `portico.history.v1.History`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_proto::history as pb;
use portico_proto::history::list_request::At;
use serde::{Deserialize, Serialize};

/// A 64-bit number, which is written as text and may be sent as a number.
#[derive(Deserialize)]
#[serde(try_from = "NumberOrText")]
struct Int64(i64);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Text(String),
}

impl TryFrom<NumberOrText> for Int64 {
    type Error = std::num::ParseIntError;

    fn try_from(value: NumberOrText) -> Result<Self, Self::Error> {
        match value {
            NumberOrText::Number(number) => Ok(Self(number)),
            NumberOrText::Text(text) => text.parse().map(Self),
        }
    }
}

/// `Target`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Target {
    group: String,
    version: String,
    resource: String,
    namespace: String,
    name: String,
}

impl From<Target> for pb::Target {
    fn from(m: Target) -> Self {
        let Target { group, version, resource, namespace, name } = m;
        Self { group, version, resource, namespace, name }
    }
}

/// `StatesRequest`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in super::super) struct States {
    target: Option<Target>,
    before: Option<Int64>,
    limit: u32,
    objects: bool,
}

impl From<States> for pb::StatesRequest {
    fn from(m: States) -> Self {
        let before = m.before.map_or(0, |Int64(before)| before);
        Self { target: m.target.map(Into::into), before, limit: m.limit, objects: m.objects }
    }
}

/// `StatesResponse`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct StatesAnswer {
    states: Vec<State>,
    more: bool,
    complete_from: String,
}

#[derive(Serialize)]
struct State {
    revision: String,
    change: &'static str,
    written: String,
    uid: String,
    manager: String,
    object: String,
    unreadable: String,
}

impl From<pb::StatesResponse> for StatesAnswer {
    fn from(m: pb::StatesResponse) -> Self {
        Self {
            states: m.states.into_iter().map(State::from).collect(),
            more: m.more,
            complete_from: m.complete_from.to_string(),
        }
    }
}

impl From<pb::State> for State {
    fn from(m: pb::State) -> Self {
        Self {
            revision: m.revision.to_string(),
            change: m.change().as_str_name(),
            written: m.written.to_string(),
            object: STANDARD.encode(&m.object),
            uid: m.uid,
            manager: m.manager,
            unreadable: m.unreadable,
        }
    }
}

/// `ListRequest`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in super::super) struct Past {
    target: Option<Target>,
    revision: Option<Int64>,
    time: Option<Int64>,
}

impl TryFrom<Past> for pb::ListRequest {
    type Error = String;

    fn try_from(m: Past) -> Result<Self, String> {
        let at = match (m.revision, m.time) {
            (Some(_), Some(_)) => return Err("revision and time exclude each other".to_owned()),
            (Some(Int64(revision)), None) => Some(At::Revision(revision)),
            (None, Some(Int64(time))) => Some(At::Time(time)),
            (None, None) => None,
        };
        Ok(Self { target: m.target.map(Into::into), at })
    }
}

/// `ListResponse`
#[derive(Serialize)]
pub(in super::super) struct PastPart {
    revision: String,
    objects: Vec<String>,
    unreadable: Vec<String>,
}

impl From<pb::ListResponse> for PastPart {
    fn from(m: pb::ListResponse) -> Self {
        let objects = m.objects.iter().map(|object| STANDARD.encode(object)).collect();
        Self { revision: m.revision.to_string(), objects, unreadable: m.unreadable }
    }
}

/// `RestoreRequest`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(in super::super) struct Restore {
    target: Option<Target>,
    revision: Option<Int64>,
    dry_run: bool,
}

impl From<Restore> for pb::RestoreRequest {
    fn from(m: Restore) -> Self {
        let revision = m.revision.map_or(0, |Int64(revision)| revision);
        Self { target: m.target.map(Into::into), revision, dry_run: m.dry_run }
    }
}

/// `RestoreResponse`
#[derive(Serialize)]
pub(in super::super) struct Restored {
    object: String,
    revision: String,
    created: bool,
    warnings: Vec<String>,
}

impl From<pb::RestoreResponse> for Restored {
    fn from(m: pb::RestoreResponse) -> Self {
        Self {
            object: STANDARD.encode(&m.object),
            revision: m.revision.to_string(),
            created: m.created,
            warnings: m.warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_read_as_numbers_and_as_texts() {
        for json in [r#"{"revision": 7}"#, r#"{"revision": "7"}"#] {
            let asked: Past = serde_json::from_str(json).unwrap();
            assert_eq!(pb::ListRequest::try_from(asked).unwrap().at, Some(At::Revision(7)), "{json}");
        }
        assert!(serde_json::from_str::<Past>(r#"{"revision": "seven"}"#).is_err());
        let both: Past = serde_json::from_str(r#"{"revision": 7, "time": 8}"#).unwrap();
        assert!(pb::ListRequest::try_from(both).is_err());
    }
}
