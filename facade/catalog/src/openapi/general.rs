//! Documents of paths that belong to no group version: `/api/`, `/apis/`, `/apis/<group>/`, `/version/`, and the documents
//! of the issuer.
//!
//! The types are data (`data/*.json`), the same for all servers.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use bytes::Bytes;
use indexmap::IndexMap;
use portico_machinery::digest::sha256_hex;
use portico_machinery::openapi::{RawMembers, SpecV2};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const INFO: &str = "io.k8s.apimachinery.pkg.version.Info";
const MEDIA: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// GET of a path outside all group versions.
struct Endpoint {
    key: String,
    operation: String,
    tag: String,
    /// Type of the response; `None` for text.
    schema: Option<String>,
    media: &'static [&'static str],
}

/// A document with its tag.
pub(super) struct GeneralDocument {
    pub json: Bytes,
    pub tag: String,
}

fn endpoints(groups: &BTreeSet<&str>) -> Vec<Endpoint> {
    let meta = |key: &str, operation: &str, tag: &str, kind: &str| Endpoint {
        key: key.to_owned(),
        operation: operation.to_owned(),
        tag: tag.to_owned(),
        schema: Some(format!("{META}{kind}")),
        media: &MEDIA,
    };
    let issuer = |key: &str, operation: &str, tag: &str, media| Endpoint {
        key: key.to_owned(),
        operation: operation.to_owned(),
        tag: tag.to_owned(),
        schema: None,
        media,
    };
    let mut all = vec![
        meta("api", "getCoreAPIVersions", "core", "APIVersions"),
        meta("apis", "getAPIVersions", "apis", "APIGroupList"),
        Endpoint {
            key: "version".to_owned(),
            operation: "getCodeVersion".to_owned(),
            tag: "version".to_owned(),
            schema: Some(INFO.to_owned()),
            media: &MEDIA[..1],
        },
        issuer(
            ".well-known/openid-configuration",
            "getServiceAccountIssuerOpenIDConfiguration",
            "WellKnown",
            &MEDIA[..1],
        ),
        issuer(
            "openid/v1/jwks",
            "getServiceAccountIssuerOpenIDKeyset",
            "openid",
            &["application/jwk-set+json"],
        ),
    ];
    all.extend(groups.iter().map(|group| {
        let friendly = friendly_name(group);
        let tag = uncapitalize(&friendly);
        meta(&format!("apis/{group}"), &format!("get{friendly}APIGroup"), &tag, "APIGroup")
    }));
    all
}

/// Returns upstream's name of a group: `RbacAuthorization` for `rbac.authorization.k8s.io`,
/// `LightExampleOrg` for `light.example.org`.
fn friendly_name(group: &str) -> String {
    let title = |part: &str| {
        let mut chars = part.chars();
        chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    group.trim_end_matches(".k8s.io").split('.').map(title).collect()
}

fn uncapitalize(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_ascii_lowercase().to_string() + chars.as_str())
}

/// Returns all documents with their keys, for the built-in groups.
pub(super) fn documents(groups: &BTreeSet<&str>, version: &str) -> Vec<(String, GeneralDocument)> {
    endpoints(groups).iter().map(|e| (e.key.clone(), e.document(version))).collect()
}

/// Returns the document with this key.
pub(super) fn document(key: &str, groups: &BTreeSet<&str>, version: &str) -> Option<GeneralDocument> {
    endpoints(groups).iter().find(|e| e.key == key).map(|e| e.document(version))
}

/// Returns the paths as a part of the version 2 document.
pub(super) fn part_v2(groups: &BTreeSet<&str>) -> SpecV2 {
    let paths = endpoints(groups).iter().map(|e| (format!("/{}/", e.key), raw(&e.path_v2()))).collect();
    SpecV2 { paths, definitions: types_v2().clone(), parameters: RawMembers::default() }
}

/// Schema of a response: a reference to a type, or a plain string.
#[derive(Serialize)]
enum ResponseSchema {
    #[serde(rename = "$ref")]
    Reference(String),
    #[serde(rename = "type")]
    Type(&'static str),
}

#[derive(Serialize)]
struct PathItem<O> {
    get: O,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationV3<'a> {
    tags: [&'a str; 1],
    description: &'static str,
    operation_id: &'a str,
    responses: IndexMap<&'static str, ResponseV3<'a>>,
}

#[derive(Serialize)]
struct ResponseV3<'a> {
    description: &'static str,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    content: IndexMap<&'a str, Content>,
}

#[derive(Serialize)]
struct Content {
    schema: ResponseSchema,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationV2<'a> {
    description: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    consumes: &'a [&'static str],
    produces: &'a [&'static str],
    schemes: [&'static str; 1],
    tags: [&'a str; 1],
    operation_id: &'a str,
    responses: IndexMap<&'static str, ResponseV2>,
}

#[derive(Serialize)]
struct ResponseV2 {
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<ResponseSchema>,
}

#[derive(Serialize)]
struct DocumentV3<'a> {
    openapi: &'static str,
    info: Info<'a>,
    paths: IndexMap<String, PathItem<OperationV3<'a>>>,
    components: Components,
}

#[derive(Serialize)]
pub(super) struct Info<'a> {
    pub title: &'static str,
    pub version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    schemas: RawMembers,
    security_schemes: IndexMap<&'static str, SecurityScheme>,
}

/// The bearer token, as described in every document.
#[derive(Serialize)]
pub(super) struct SecurityScheme {
    #[serde(rename = "type")]
    kind: &'static str,
    description: &'static str,
    name: &'static str,
    #[serde(rename = "in")]
    location: &'static str,
}

pub(super) fn security() -> IndexMap<&'static str, SecurityScheme> {
    let bearer = SecurityScheme {
        kind: "apiKey",
        description: "Bearer Token authentication",
        name: "authorization",
        location: "header",
    };
    IndexMap::from([("BearerToken", bearer)])
}

impl Endpoint {
    fn description(&self) -> &'static str {
        match self.key.as_str() {
            "api" | "apis" => "get available API versions",
            "version" => "get the version information for this server",
            ".well-known/openid-configuration" => {
                "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
            }
            "openid/v1/jwks" => {
                "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"
            }
            _ => "get information of a group",
        }
    }

    fn response_schema(&self, types: &str) -> ResponseSchema {
        self.schema.as_ref().map_or(ResponseSchema::Type("string"), |name| {
            ResponseSchema::Reference(format!("{types}{name}"))
        })
    }

    fn document(&self, version: &str) -> GeneralDocument {
        let schema = || self.response_schema("#/components/schemas/");
        let content = self.media.iter().map(|media| (*media, Content { schema: schema() })).collect();
        let unauthorized = ResponseV3 { description: "Unauthorized", content: IndexMap::new() };
        let get = OperationV3 {
            tags: [&self.tag],
            description: self.description(),
            operation_id: &self.operation,
            responses: IndexMap::from([
                ("200", ResponseV3 { description: "OK", content }),
                ("401", unauthorized),
            ]),
        };
        let document = DocumentV3 {
            openapi: "3.0.0",
            info: Info { title: "Kubernetes", version },
            paths: IndexMap::from([(format!("/{}/", self.key), PathItem { get })]),
            components: Components { schemas: self.schemas(), security_schemes: security() },
        };
        // Serialization of structs of strings does not fail.
        let json: Bytes = serde_json::to_vec(&document).unwrap_or_default().into();
        let tag = sha256_hex(&json).to_ascii_uppercase();
        GeneralDocument { json, tag }
    }

    fn path_v2(&self) -> PathItem<OperationV2<'_>> {
        let schema = Some(self.response_schema("#/definitions/"));
        let get = OperationV2 {
            description: self.description(),
            // Upstream's handlers of the issuer list none.
            consumes: if self.schema.is_some() { self.media } else { &[] },
            produces: self.media,
            schemes: ["https"],
            tags: [&self.tag],
            operation_id: &self.operation,
            responses: IndexMap::from([
                ("200", ResponseV2 { description: "OK", schema }),
                ("401", ResponseV2 { description: "Unauthorized", schema: None }),
            ]),
        };
        PathItem { get }
    }

    fn schemas(&self) -> RawMembers {
        let Some(schema) = self.schema.as_deref() else { return RawMembers::default() };
        let parts: &[&str] = match schema.trim_start_matches(META) {
            "APIVersions" => &["ServerAddressByClientCIDR"],
            "APIGroup" => &["GroupVersionForDiscovery", "ServerAddressByClientCIDR"],
            "APIGroupList" => &["APIGroup", "GroupVersionForDiscovery", "ServerAddressByClientCIDR"],
            _ => &[],
        };
        let is_used = |name: &str| name == schema || parts.contains(&name.trim_start_matches(META));
        types_v3().iter().filter(|(name, _)| is_used(name)).map(|(n, p)| (n.clone(), p.clone())).collect()
    }
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

fn types_v3() -> &'static RawMembers {
    static TYPES: OnceLock<RawMembers> = OnceLock::new();
    TYPES.get_or_init(|| parse_embedded(include_str!("data/schemas_v3.json")))
}

fn types_v2() -> &'static RawMembers {
    static TYPES: OnceLock<RawMembers> = OnceLock::new();
    TYPES.get_or_init(|| parse_embedded(include_str!("data/definitions_v2.json")))
}

/// Parses embedded data, which a test validates.
fn parse_embedded(text: &str) -> RawMembers {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_types_can_be_parsed() {
        assert_eq!((types_v3().len(), types_v2().len()), (6, 6));
    }

    #[test]
    fn groups_have_upstreams_names() {
        for (group, name, tag) in [
            ("apps", "Apps", "apps"),
            ("rbac.authorization.k8s.io", "RbacAuthorization", "rbacAuthorization"),
            ("light.example.org", "LightExampleOrg", "lightExampleOrg"),
        ] {
            assert_eq!(
                (friendly_name(group).as_str(), uncapitalize(&friendly_name(group)).as_str()),
                (name, tag)
            );
        }
    }
}
