//! RequestInfo: verb, resource or path of a request, parsed before it is known if the resource exists.
//!
//! Pure function of the decoded path and the raw query.

use portico_gostd::url::Query;

use crate::api_path::ApiPath;
use crate::selector::{FieldSelector, LabelSelector};

/// Parsed request for authorization, flow control, audit and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// True if the path names a resource.
    pub is_resource_request: bool,
    /// Decoded URL path.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, ...; the lower-case method for non-resource requests; empty for OPTIONS.
    pub verb: String,
    /// `api` or `apis`.
    pub api_prefix: String,
    /// Group, empty for core.
    pub api_group: String,
    /// Version of the API.
    pub api_version: String,
    /// Namespace, empty at cluster scope.
    pub namespace: String,
    /// Plural resource name.
    pub resource: String,
    /// Subresource, empty if there is none.
    pub subresource: String,
    /// Name of the object.
    pub name: String,
    /// Path segments starting with the resource.
    pub parts: Vec<String>,
    /// Raw label selector of list, watch and deletecollection.
    pub label_selector: String,
    /// Raw field selector of list, watch and deletecollection.
    pub field_selector: String,
    /// True if the deprecated `/watch/` prefix was used.
    pub watch_prefix: bool,
}

/// Error for a resource path that ends after a verb prefix; upstream responds with 500 and this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to determine kind and namespace from url, {0}")]
pub struct InvalidPath(pub String);

impl RequestInfo {
    /// Parses a request line. `path` is percent-decoded, `query` is raw.
    ///
    /// # Errors
    /// [`InvalidPath`] if a verb prefix (`watch`, `proxy`) ends the path.
    pub fn parse(method: &str, path: &str, query: &str) -> Result<Self, InvalidPath> {
        let mut info = Self { path: path.to_owned(), ..Self::default() };
        let Some((prefix, group, version, rest)) = api_segments(path) else {
            info.verb = method.to_ascii_lowercase();
            return Ok(info);
        };
        info.is_resource_request = true;
        info.api_prefix = prefix.to_owned();
        info.api_group = group.to_owned();
        info.api_version = version.to_owned();
        let mut parts = rest.as_slice();
        let verb_prefix = matches!(parts[0], "proxy" | "watch");
        if verb_prefix {
            if parts.len() < 2 {
                return Err(InvalidPath(path.to_owned()));
            }
            info.verb = parts[0].to_owned();
            info.watch_prefix = parts[0] == "watch";
            parts = &parts[1..];
        } else {
            info.verb = verb_of(method).to_owned();
        }
        info.take_parts(parts);
        info.refine_verb(query);
        Ok(info)
    }

    fn take_parts(&mut self, mut parts: &[&str]) {
        if parts[0] == "namespaces" && parts.len() > 1 {
            self.namespace = parts[1].to_owned();
            if parts.len() > 2 && !matches!(parts[2], "status" | "finalize") {
                parts = &parts[2..];
            }
        }
        self.parts = parts.iter().map(|&p| p.to_owned()).collect();
        self.resource = parts[0].to_owned();
        self.name = parts.get(1).copied().unwrap_or_default().to_owned();
        if self.verb != "proxy" {
            self.subresource = parts.get(2).copied().unwrap_or_default().to_owned();
        }
    }

    /// Refines the verb for collections: `get` becomes list or watch, `delete` becomes deletecollection; parses selectors.
    fn refine_verb(&mut self, query: &str) {
        if !self.name.is_empty() || !matches!(self.verb.as_str(), "get" | "delete") {
            return;
        }
        let query = Query::parse(query);
        let first = |key| query.first(key).unwrap_or_default();
        self.label_selector = first("labelSelector").to_owned();
        self.field_selector = first("fieldSelector").to_owned();
        if self.verb == "delete" {
            self.verb = "deletecollection".to_owned();
        } else {
            let watch = query.first("watch").is_some_and(parse_query_bool);
            self.verb = if watch { "watch" } else { "list" }.to_owned();
            self.name = name_from_list_options(&query).unwrap_or_default();
        }
    }

    /// Returns the position of the path in the API.
    #[must_use]
    pub fn api_path(&self) -> ApiPath<'_> {
        ApiPath::parse(&self.path)
    }

    /// True if the request is read-only, which determines the in-flight class and the store path.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Returns `resource/subresource`, or the resource alone.
    #[must_use]
    pub fn resource_path(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// Returns the path after the subresource, with a leading slash and any trailing slash. Empty if there is none.
    #[must_use]
    pub fn path_after_subresource(&self) -> String {
        let mut rest = self.parts.get(3..).unwrap_or_default().join("/");
        if !rest.is_empty() && !rest.starts_with('/') {
            rest.insert(0, '/');
        }
        if self.path.ends_with('/') && !rest.ends_with('/') {
            rest.push('/');
        }
        rest
    }

    /// True if the subresource connects to another server: a kubelet, a pod, a Service or a node.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.is_resource_request
            && matches!(self.subresource.as_str(), "attach" | "exec" | "log" | "portforward" | "proxy")
    }

    /// Returns upstream's metric label: `resource`, `namespace`, `cluster`, or an empty string for other paths.
    #[must_use]
    pub fn scope(&self) -> &'static str {
        let of_one = !self.name.is_empty() || self.verb == "create";
        match (self.is_resource_request, of_one, self.namespace.is_empty()) {
            (false, ..) => "",
            (true, true, _) => "resource",
            (true, false, false) => "namespace",
            (true, false, true) => "cluster",
        }
    }
}

/// Splits off `api/V` or `apis/G/V`. Returns `None` if no resource follows.
fn api_segments(path: &str) -> Option<(&'static str, &str, &str, Vec<&str>)> {
    let mut segments = path.trim_matches('/').split('/');
    let (prefix, group) = match segments.next()? {
        "api" => ("api", ""),
        "apis" => ("apis", segments.next()?),
        _ => return None,
    };
    let version = segments.next()?;
    let rest: Vec<&str> = segments.collect();
    (!rest.is_empty()).then_some((prefix, group, version, rest))
}

fn verb_of(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// Parses a Boolean query parameter like upstream: only `false` (any case) and `0` are false; the empty string is true.
#[must_use]
pub fn parse_query_bool(value: &str) -> bool {
    !(value.eq_ignore_ascii_case("false") || value == "0")
}

/// Returns the object name that the field selector of a list or watch requires.
///
/// Mirrors upstream's `RequestInfoFactory`: returns `None` if any list option cannot be decoded.
fn name_from_list_options(query: &Query<'_>) -> Option<String> {
    let selector = FieldSelector::parse(query.first("fieldSelector")?).ok()?;
    LabelSelector::parse(query.first("labelSelector").unwrap_or_default()).ok()?;
    for key in ["limit", "timeoutSeconds"] {
        query.first(key).map(str::parse::<i64>).transpose().ok()?;
    }
    let name = selector.requires_exact_match("metadata.name")?;
    let legal = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    legal.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns: method, URL, is resource, verb, group, version, namespace, resource, subresource, name
    type Row = (&'static str, &'static str, bool, [&'static str; 7]);

    const ROWS: &[Row] = &[
        ("GET", "/api/v1/pods", true, ["list", "", "v1", "", "pods", "", ""]),
        ("GET", "/api/v1/pods?watch=true", true, ["watch", "", "v1", "", "pods", "", ""]),
        ("GET", "/api/v1/pods?watch", true, ["watch", "", "v1", "", "pods", "", ""]),
        ("GET", "/api/v1/pods?watch=FALSE", true, ["list", "", "v1", "", "pods", "", ""]),
        ("GET", "/api/v1/watch/pods", true, ["watch", "", "v1", "", "pods", "", ""]),
        ("GET", "/api/v1/namespaces/a", true, ["get", "", "v1", "a", "namespaces", "", "a"]),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            true,
            ["update", "", "v1", "a", "namespaces", "finalize", "a"],
        ),
        ("GET", "/api/v1/namespaces/a/status", true, ["get", "", "v1", "a", "namespaces", "status", "a"]),
        ("GET", "/api/v1/namespaces/a/pods", true, ["list", "", "v1", "a", "pods", "", ""]),
        ("DELETE", "/api/v1/namespaces/a/pods", true, ["deletecollection", "", "v1", "a", "pods", "", ""]),
        (
            "POST",
            "/api/v1/namespaces/a/pods/p/binding",
            true,
            ["create", "", "v1", "a", "pods", "binding", "p"],
        ),
        ("GET", "/api/v1/namespaces/a/pods/p/proxy/x/y", true, ["get", "", "v1", "a", "pods", "proxy", "p"]),
        ("HEAD", "/api/v1/namespaces/a/pods/p", true, ["get", "", "v1", "a", "pods", "", "p"]),
        ("OPTIONS", "/api/v1/pods", true, ["", "", "v1", "", "pods", "", ""]),
        (
            "GET",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            true,
            ["get", "apps", "v1", "a", "deployments", "scale", "d"],
        ),
        (
            "GET",
            "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Dx",
            true,
            ["list", "apps", "v1", "", "deployments", "", "x"],
        ),
        ("GET", "/apis/apps/v1", false, ["get", "", "", "", "", "", ""]),
        ("GET", "/api/v1", false, ["get", "", "", "", "", "", ""]),
        ("POST", "/version", false, ["post", "", "", "", "", "", ""]),
        ("GET", "/api/v1/proxy/namespaces/a/pods/p/x", true, ["proxy", "", "v1", "a", "pods", "", "p"]),
    ];

    #[test]
    fn requests_are_parsed_as_upstream_does() {
        for (method, url, is_resource, want) in ROWS {
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            let i = RequestInfo::parse(method, path, query).unwrap();
            let got =
                [&i.verb, &i.api_group, &i.api_version, &i.namespace, &i.resource, &i.subresource, &i.name];
            assert_eq!(i.is_resource_request, *is_resource, "{method} {url}");
            assert_eq!(got.map(String::as_str), *want, "{method} {url}");
        }
    }

    #[test]
    fn paths_after_subresources_keep_their_slashes() {
        for (path, want) in [
            ("/api/v1/nodes/n/proxy", ""),
            ("/api/v1/nodes/n/proxy/", "/"),
            ("/api/v1/nodes/n/proxy/a/b", "/a/b"),
            ("/api/v1/nodes/n/proxy/a//b/", "/a//b/"),
            ("/api/v1/nodes/n", ""),
        ] {
            let info = RequestInfo::parse("GET", path, "").unwrap();
            assert_eq!(info.path_after_subresource(), want, "{path}");
            assert_eq!(info.is_connect(), path.contains("proxy"), "{path}");
        }
    }

    #[test]
    fn a_verb_prefix_without_a_resource_is_an_error() {
        assert!(RequestInfo::parse("GET", "/api/v1/watch", "").is_err());
    }
}
