//! Names of operations and tags, from which clients are generated, as upstream.

use portico_machinery::GroupVersion;

/// Parts of names that derive from a group version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Prefix of operation IDs, such as `CoordinationV1`, `CoreV1` or `RbacAuthorizationV1`.
    pub prefix: String,
    /// Tag, such as `coordination_v1`, `core_v1` or `rbacAuthorization_v1`.
    pub tag: String,
}

impl Names {
    pub fn new(gv: &GroupVersion) -> Self {
        let group = if gv.is_core() { "core" } else { gv.group.strip_suffix(".k8s.io").unwrap_or(&gv.group) };
        let camel_case: String = group.split(['.', '-']).map(capitalize).collect();
        let tag = format!("{}_{}", uncapitalize(&camel_case), gv.version);
        Self { prefix: camel_case + &capitalize(&gv.version), tag }
    }
}

pub(super) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + chars.as_str())
}

/// Returns a kind with its article, as upstream (`GetArticleForNoun`): kinds that look like plurals have none.
pub(super) fn with_article(kind: &str) -> String {
    let is_plural = kind.ends_with('s') && !kind.ends_with("ss");
    match kind.chars().next() {
        _ if is_plural => kind.to_owned(),
        Some('a' | 'e' | 'i' | 'o' | 'u' | 'A' | 'E' | 'I' | 'O' | 'U') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

fn uncapitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_ascii_lowercase().to_string() + chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_upstreams_names() {
        for (group, version, prefix, tag) in [
            ("", "v1", "CoreV1", "core_v1"),
            ("apps", "v1", "AppsV1", "apps_v1"),
            ("rbac.authorization.k8s.io", "v1", "RbacAuthorizationV1", "rbacAuthorization_v1"),
            ("cluster.x-k8s.io", "v1beta2", "ClusterXK8sIoV1beta2", "clusterXK8sIo_v1beta2"),
            ("light.example.org", "v1beta1", "LightExampleOrgV1beta1", "lightExampleOrg_v1beta1"),
        ] {
            let expected = Names { prefix: prefix.into(), tag: tag.into() };
            assert_eq!(Names::new(&GroupVersion::new(group, version)), expected);
        }
    }
}
