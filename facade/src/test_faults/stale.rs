//! Reads of an earlier revision: the list that provides the data of a read, and the extraction of one object.
//!
//! Every API server can list at an exact revision but not get at one, so a get is served from the list that contains only
//! the object.

use bytes::Bytes;
use portico_gostd::url::{escape_query_into, first_value};
use portico_machinery::RequestInfo;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A list at an earlier revision, which serves a list request, or a get request with its only item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierList {
    /// Path of the list.
    pub path: String,
    /// Query of the list.
    pub query: String,
    /// True if the original request is a get of one object.
    pub is_get: bool,
}

impl EarlierList {
    /// Returns the list that serves this request at `revision`. `None` for other verbs and for subresources, and if the request
    /// itself determines the revision: a newer or exact one, or that of the next page of a list.
    pub fn for_request(info: &RequestInfo, query: &str, revision: i64) -> Option<Self> {
        if !info.subresource.is_empty() || determines_revision(query, revision) {
            return None;
        }
        match info.verb.as_str() {
            "list" => Some(Self {
                path: info.path.clone(),
                query: with_exact_revision(query, revision),
                is_get: false,
            }),
            "get" => {
                let name = info.parts.get(1)?;
                let path = info.path.trim_end_matches('/').strip_suffix(name.as_str())?;
                let selector = format!("fieldSelector={}", escaped_name_selector(name));
                let path = path.trim_end_matches('/').to_owned();
                Some(Self { path, query: with_exact_revision(&selector, revision), is_get: true })
            }
            _ => None,
        }
    }
}

fn determines_revision(query: &str, revision: i64) -> bool {
    let parameter = |key| first_value(query, key).filter(|value| !value.is_empty());
    let newer =
        parameter("resourceVersion").and_then(|text| text.parse::<i64>().ok()).is_some_and(|r| r > revision);
    newer || parameter("continue").is_some() || parameter("resourceVersionMatch").as_deref() == Some("Exact")
}

/// Replaces the revision of a query by this exact one.
fn with_exact_revision(query: &str, revision: i64) -> String {
    let is_other_parameter = |pair: &&str| {
        let key = pair.split('=').next().unwrap_or_default();
        !key.is_empty() && key != "resourceVersion" && key != "resourceVersionMatch"
    };
    let mut pairs: Vec<&str> = query.split('&').filter(is_other_parameter).collect();
    let revision = format!("resourceVersion={revision}");
    pairs.extend([revision.as_str(), "resourceVersionMatch=Exact"]);
    pairs.join("&")
}

/// Builds the field selector `metadata.name=NAME`, escaped for a query.
fn escaped_name_selector(name: &str) -> String {
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
struct ItemKind {
    kind: Option<String>,
}

/// Error: the response is not a list.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode the list of an earlier revision: {0}")]
pub struct InvalidList(#[from] serde_json::Error);

/// Returns the only object of a JSON list in the form of a get; `None` if the list is empty.
///
/// # Errors
/// [`InvalidList`]
pub fn only_item(list: &[u8]) -> Result<Option<Bytes>, InvalidList> {
    let List { kind, api_version, items } = serde_json::from_slice(list)?;
    let Some(object) = items.as_ref().and_then(|items| items.first()).map(|item| item.get()) else {
        return Ok(None);
    };
    if serde_json::from_str::<ItemKind>(object)?.kind.is_some() {
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
    fn a_read_becomes_a_list_at_the_exact_revision_unless_it_determines_one() {
        let pods = "/api/v1/namespaces/a/pods";
        let list = |query: &str| Some(format!("{pods}?{query}"));
        let single_object = "fieldSelector=metadata.name%3Db&resourceVersion=7&resourceVersionMatch=Exact";
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
            (get.as_str(), "", list(single_object)),
            (get.as_str(), "resourceVersion=0", list(single_object)),
            (get.as_str(), "resourceVersion=9", None),
            ("/api/v1/namespaces/a/pods/b/log", "", None),
            (
                "/api/v1/namespaces/a",
                "",
                Some("/api/v1/namespaces?fieldSelector=metadata.name%3Da&resourceVersion=7&resourceVersionMatch=Exact".into()),
            ),
        ] {
            let info = RequestInfo::parse("GET", path, query).unwrap();
            let earlier = EarlierList::for_request(&info, query, 7);
            assert_eq!(earlier.as_ref().map(|e| format!("{}?{}", e.path, e.query)), expected, "{path}?{query}");
            assert!(earlier.is_none_or(|e| e.is_get == (path != pods)));
        }
        let info = RequestInfo::parse("PUT", &get, "").unwrap();
        assert_eq!(EarlierList::for_request(&info, "", 7), None);
        assert_eq!(escaped_name_selector("a,b=c"), "metadata.name%3Da%5C%2Cb%5C%3Dc");
    }

    #[test]
    fn the_item_of_a_list_gets_its_kind_and_version() {
        let get =
            |text: &str| only_item(text.as_bytes()).unwrap().map(|b| String::from_utf8(b.to_vec()).unwrap());
        let typed =
            r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}}]}"#;
        let expected = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#;
        assert_eq!(get(typed).as_deref(), Some(expected));
        let custom = r#"{"kind":"BoxList","apiVersion":"x/v1","items":[{"kind":"Box","spec":1}]}"#;
        assert_eq!(get(custom).as_deref(), Some(r#"{"kind":"Box","spec":1}"#));
        assert_eq!(get(r#"{"kind":"BoxList","apiVersion":"x/v1","items":[]}"#), None);
        assert_eq!(get(r#"{"kind":"BoxList","apiVersion":"x/v1","items":null}"#), None);
        assert!(only_item(b"no list").is_err());
    }
}
