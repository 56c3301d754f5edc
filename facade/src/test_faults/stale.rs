//! Reads of an earlier revision: the list that provides the data of a read, and the extraction of one object.
//!
//! Every API server can list at an exact revision but not get at one, so a get is served from the list that contains only
//! the object.

use bytes::Bytes;
use portico_gostd::url::{escape_query_into, first_value};
use portico_machinery::RequestInfo;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A list at an earlier revision, and whether a get is served from its only item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Path of the list.
    pub path: String,
    /// Query of the list.
    pub query: String,
    /// True if the original request is a get of one object.
    pub one: bool,
}

impl Earlier {
    /// Returns the list that serves this request at `revision`. `None` for other verbs and for subresources, and if the request
    /// itself determines the revision: a newer or exact one, or that of the next page of a list.
    pub fn of(info: &RequestInfo, query: &str, revision: i64) -> Option<Self> {
        if !info.subresource.is_empty() || wants_a_state(query, revision) {
            return None;
        }
        match info.verb.as_str() {
            "list" => Some(Self { path: info.path.clone(), query: exactly(query, revision), one: false }),
            "get" => {
                let name = info.parts.get(1)?;
                let path = info.path.trim_end_matches('/').strip_suffix(name.as_str())?;
                let selector = format!("fieldSelector={}", escaped(name));
                let path = path.trim_end_matches('/').to_owned();
                Some(Self { path, query: exactly(&selector, revision), one: true })
            }
            _ => None,
        }
    }
}

fn wants_a_state(query: &str, revision: i64) -> bool {
    let parameter = |key| first_value(query, key).filter(|value| !value.is_empty());
    let newer =
        parameter("resourceVersion").and_then(|text| text.parse::<i64>().ok()).is_some_and(|r| r > revision);
    newer || parameter("continue").is_some() || parameter("resourceVersionMatch").as_deref() == Some("Exact")
}

/// Replaces the revision of a query by this exact one.
fn exactly(query: &str, revision: i64) -> String {
    let replaced = |pair: &&str| {
        let key = pair.split('=').next().unwrap_or_default();
        !key.is_empty() && key != "resourceVersion" && key != "resourceVersionMatch"
    };
    let mut pairs: Vec<&str> = query.split('&').filter(replaced).collect();
    let revision = format!("resourceVersion={revision}");
    pairs.extend([revision.as_str(), "resourceVersionMatch=Exact"]);
    pairs.join("&")
}

/// Builds the field selector `metadata.name=NAME`, escaped for a query.
fn escaped(name: &str) -> String {
    let quoted = name.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    let mut out = Vec::new();
    escape_query_into(&mut out, format!("metadata.name={quoted}").as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Deserialize)]
struct List<'a> {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// Error: the response is not a list.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode the list of an earlier revision: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

/// Returns the only object of a JSON list in the form of a get; `None` if the list is empty.
///
/// # Errors
/// [`InvalidList`]
pub fn item(list: &[u8]) -> Result<Option<Bytes>, Unreadable> {
    let List { kind, api_version, items } = serde_json::from_slice(list)?;
    let Some(object) = items.as_ref().and_then(|items| items.first()).map(|item| item.get()) else {
        return Ok(None);
    };
    if serde_json::from_str::<Kind>(object)?.kind.is_some() {
        return Ok(Some(Bytes::copy_from_slice(object.as_bytes())));
    }
    // Items of a typed list have no kind and version.
    let kind = serde_json::to_string(kind.strip_suffix("List").unwrap_or(&kind))?;
    let version = serde_json::to_string(&api_version)?;
    let fields = object.trim_start().strip_prefix('{').unwrap_or_default();
    let comma = if fields.trim_start().starts_with('}') { "" } else { "," };
    Ok(Some(format!(r#"{{"kind":{kind},"apiVersion":{version}{comma}{fields}"#).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_a_list_of_exactly_that_revision_unless_it_names_the_state_it_wants() {
        let pods = "/api/v1/namespaces/a/pods";
        let list = |query: &str| Some(format!("{pods}?{query}"));
        let one = "fieldSelector=metadata.name%3Db&resourceVersion=7&resourceVersionMatch=Exact";
        let get = format!("{pods}/b");
        for (path, query, expected) in [
            (pods, "", list("resourceVersion=7&resourceVersionMatch=Exact")),
            (pods, "limit=5&resourceVersion=0", list("limit=5&resourceVersion=7&resourceVersionMatch=Exact")),
            (
                pods,
                "resourceVersion=6&resourceVersionMatch=NotOlderThan&labelSelector=a",
                list("labelSelector=a&resourceVersion=7&resourceVersionMatch=Exact"),
            ),
            (pods, "resourceVersion=7", list("resourceVersion=7&resourceVersionMatch=Exact")),
            (pods, "resourceVersion=8", None),
            (pods, "resourceVersion=3&resourceVersionMatch=Exact", None),
            (pods, "continue=abc", None),
            (pods, "watch=true", None),
            (get.as_str(), "", list(one)),
            (get.as_str(), "resourceVersion=0", list(one)),
            (get.as_str(), "resourceVersion=9", None),
            ("/api/v1/namespaces/a/pods/b/log", "", None),
            (
                "/api/v1/namespaces/a",
                "",
                Some("/api/v1/namespaces?fieldSelector=metadata.name%3Da&resourceVersion=7&resourceVersionMatch=Exact".into()),
            ),
        ] {
            let info = RequestInfo::parse("GET", path, query).unwrap();
            let earlier = Earlier::of(&info, query, 7);
            assert_eq!(earlier.as_ref().map(|e| format!("{}?{}", e.path, e.query)), expected, "{path}?{query}");
            assert!(earlier.is_none_or(|e| e.one == (path != pods)));
        }
        let info = RequestInfo::parse("PUT", &get, "").unwrap();
        assert_eq!(Earlier::of(&info, "", 7), None);
        assert_eq!(escaped("a,b=c"), "metadata.name%3Da%5C%2Cb%5C%3Dc");
    }

    #[test]
    fn the_item_of_a_list_has_its_kind_and_version() {
        let get = |text: &str| item(text.as_bytes()).unwrap().map(|b| String::from_utf8(b.to_vec()).unwrap());
        let typed =
            r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}}]}"#;
        let expected = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#;
        assert_eq!(get(typed).as_deref(), Some(expected));
        let custom = r#"{"kind":"BoxList","apiVersion":"x/v1","items":[{"kind":"Box","spec":1}]}"#;
        assert_eq!(get(custom).as_deref(), Some(r#"{"kind":"Box","spec":1}"#));
        assert_eq!(get(r#"{"kind":"BoxList","apiVersion":"x/v1","items":[]}"#), None);
        assert_eq!(get(r#"{"kind":"BoxList","apiVersion":"x/v1","items":null}"#), None);
        assert!(item(b"no list").is_err());
    }
}
