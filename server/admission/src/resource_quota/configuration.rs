//! Configuration of ResourceQuota (upstream's `ResourceQuotaConfiguration`).

use portico_machinery::{Cursor, Object};

use super::limited_resources::{LimitedResource, MatchScope};
use crate::configuration_kinds::{ConfigKind, PluginConfigurationError, Scheme};

const TYPE: &str = "Configuration";
const SCHEME: Scheme = Scheme {
    kinds: &[
        ConfigKind { version: "apiserver.config.k8s.io/v1", kind: "ResourceQuotaConfiguration", ty: TYPE },
        ConfigKind { version: "resourcequota.admission.k8s.io/v1beta1", kind: TYPE, ty: TYPE },
        ConfigKind { version: "resourcequota.admission.k8s.io/v1alpha1", kind: TYPE, ty: TYPE },
    ],
    types: r#"{
        "Configuration": {"fields": {
            "kind": {"type": "string"}, "apiVersion": {"type": "string"},
            "limitedResources": {"type": "[]LimitedResource"}
        }},
        "LimitedResource": {"fields": {
            "apiGroup": {"type": "string"}, "resource": {"type": "string"},
            "matchContains": {"type": "[]string"},
            "matchScopes": {"type": "[]ScopedResourceSelectorRequirement"}
        }},
        "ScopedResourceSelectorRequirement": {"fields": {
            "scopeName": {"type": "string"}, "operator": {"type": "string"}, "values": {"type": "[]string"}
        }}
    }"#,
    strict: true,
};

/// Configuration of ResourceQuota.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaConfiguration {
    /// Resources that require a covering quota.
    pub(crate) limited_resources: Vec<LimitedResource>,
}

impl QuotaConfiguration {
    /// Reads a configuration. Without one, no resource requires a quota.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, PluginConfigurationError> {
        let object = bytes.map_or_else(|| Ok(Object::default()), |bytes| SCHEME.decode(bytes))?;
        let list = object.at(&["limitedResources"]);
        let unnamed = list.items().map(|limited| limited.field("resource"));
        let errors: Vec<_> =
            unnamed.filter(|name| name.str().is_empty()).map(|name| name.required("")).collect();
        if !errors.is_empty() {
            return Err(PluginConfigurationError::Invalid(errors));
        }
        Ok(Self { limited_resources: list.items().map(|limited| resource(&limited)).collect() })
    }
}

fn resource(entry: &Cursor<'_>) -> LimitedResource {
    let scope = |scope: Cursor<'_>| MatchScope {
        scope_name: scope.field("scopeName").str().to_owned(),
        operator: scope.field("operator").str().to_owned(),
        values: texts(&scope.field("values")),
    };
    LimitedResource {
        api_group: entry.field("apiGroup").str().to_owned(),
        resource: entry.field("resource").str().to_owned(),
        match_contains: texts(&entry.field("matchContains")),
        match_scopes: entry.field("matchScopes").items().map(scope).collect(),
    }
}

fn texts(list: &Cursor<'_>) -> Vec<String> {
    list.items().map(|text| text.str().to_owned()).collect()
}
