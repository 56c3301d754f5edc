//! Converts an `APIResourceList` to the aggregated form, like upstream's `discoveryManager.fetchFreshDiscoveryForService`.

use indexmap::IndexMap;
use portico_gostd::json::{self, Readable};
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{
    ApiResource, ResourceDiscovery, ResponseKind, SubresourceDiscovery, VersionDiscovery,
};
use serde::Deserialize;

use super::readable_entries::readable_entries;

/// Fields of an `APIResourceList`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    resources: Readable<ApiResource>,
}

/// Error for a list that cannot be converted.
#[derive(Debug, thiserror::Error)]
pub(super) enum LegacyError {
    /// The document is not a list.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A subresource has another scope than its resource.
    #[error("resource {0} and its subresource {1} have different scopes")]
    Scope(String, String),
}

/// Converts a list; missing parents of subresources are added.
pub(super) fn convert(gv: &GroupVersion, json: &[u8]) -> Result<VersionDiscovery, LegacyError> {
    let list: List = json::from_slice(json)?;
    let resources = readable_entries(&gv.to_string(), list.resources);
    let mut parents: IndexMap<String, ResourceDiscovery> = IndexMap::new();
    for resource in resources.iter().filter(|r| !r.name.contains('/')) {
        parents.insert(resource.name.clone(), parent(resource));
    }
    for resource in &resources {
        let Some((name, subresource)) = resource.name.split_once('/') else { continue };
        let scope = scope(resource);
        let new_parent = || ResourceDiscovery {
            resource: name.to_owned(),
            scope: scope.to_owned(),
            ..ResourceDiscovery::default()
        };
        let parent = parents.entry(name.to_owned()).or_insert_with(new_parent);
        if parent.scope != scope {
            return Err(LegacyError::Scope(name.to_owned(), subresource.to_owned()));
        }
        parent.subresources.push(SubresourceDiscovery {
            subresource: subresource.to_owned(),
            response_kind: kind(resource),
            verbs: resource.verbs.clone(),
        });
    }
    Ok(VersionDiscovery {
        version: gv.version.clone(),
        resources: parents.into_values().collect(),
        freshness: "Current".to_owned(),
    })
}

fn parent(resource: &ApiResource) -> ResourceDiscovery {
    ResourceDiscovery {
        resource: resource.name.clone(),
        response_kind: kind(resource),
        scope: scope(resource).to_owned(),
        singular_resource: resource.singular_name.clone(),
        verbs: resource.verbs.clone(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        subresources: Vec::new(),
    }
}

/// Returns the kind of a resource; empty if the list has none.
fn kind(resource: &ApiResource) -> ResponseKind {
    if resource.kind.is_empty() {
        return ResponseKind::default();
    }
    ResponseKind {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
    }
}

fn scope(resource: &ApiResource) -> &'static str {
    if resource.namespaced { "Namespaced" } else { "Cluster" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(json: &str) -> Result<String, String> {
        let version = convert(&GroupVersion::new("g", "v1"), json.as_bytes()).map_err(|e| e.to_string())?;
        Ok(serde_json::to_string(&version.resources).unwrap())
    }

    #[test]
    fn subresources_are_added_to_their_parents_in_any_order() {
        let actual = converted(
            r#"{"resources":[{"name":"a/status","namespaced":true,"kind":"A","verbs":["get"]},
                {"name":"a","singularName":"one","namespaced":true,"kind":"A","verbs":["list"],"shortNames":["s"]},
                {"name":"b/proxy","namespaced":false,"verbs":["get"]}]}"#,
        );
        let expected = concat!(
            r#"[{"resource":"a","responseKind":{"group":"","version":"","kind":"A"},"scope":"Namespaced","#,
            r#""singularResource":"one","verbs":["list"],"shortNames":["s"],"subresources":[{"subresource":"status","#,
            r#""responseKind":{"group":"","version":"","kind":"A"},"verbs":["get"]}]},"#,
            r#"{"resource":"b","responseKind":{"group":"","version":"","kind":""},"scope":"Cluster","#,
            r#""singularResource":"","verbs":[],"subresources":[{"subresource":"proxy","#,
            r#""responseKind":{"group":"","version":"","kind":""},"verbs":["get"]}]}]"#
        );
        assert_eq!(actual.as_deref(), Ok(expected));
    }

    #[test]
    fn null_is_empty_and_an_invalid_resource_is_skipped() {
        assert_eq!(converted(r#"{"kind":"APIResourceList","resources":null}"#).as_deref(), Ok("[]"));
        let actual = converted(
            r#"{"resources":[{"name":"a","verbs":null,"shortNames":null,"categories":null,"kind":null},
                {"name":"b","verbs":"get"},null,{"name":"c","verbs":["get"],"odd":{}}]}"#,
        );
        let names: Vec<_> = actual.as_deref().unwrap().match_indices(r#""resource":""#).collect();
        assert_eq!(names.len(), 2, "{actual:?}");
    }

    #[test]
    fn a_subresource_of_another_scope_is_an_error() {
        let actual = converted(
            r#"{"resources":[{"name":"a","namespaced":true},{"name":"a/status","namespaced":false}]}"#,
        );
        assert!(actual.unwrap_err().contains("different scopes"));
        assert!(converted("404 page not found").is_err());
    }
}
