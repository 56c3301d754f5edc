//! Tests of the loader: consistency of the embedded data, and lookups.

use std::collections::HashSet;

use portico_machinery::gvk::GroupVersionResource;
use portico_schema::FieldType;

use super::*;

#[test]
fn the_embedded_kinds_are_consistent() {
    let kinds = Kinds::builtin().unwrap();
    for info in kinds.iter() {
        let name = &info.gvk.kind;
        assert_eq!(kinds.by_resource(&info.gvr()).unwrap().gvk, info.gvk);
        assert_eq!(kinds.by_kind(&info.gvk).unwrap().resource, info.resource);
        if info.stored {
            assert!(kinds.by_storage(&info.storage).unwrap().is_storage_version(), "{name}");
            assert_eq!(info.columns[..].iter().filter(|c| c.column.name == "Name").count(), 1, "{name}");
        }
        assert!(info.columns.iter().all(|c| !c.column.description.is_empty()), "{name}");
        assert!(info.verbs.is_sorted() && info.subresources.is_sorted_by_key(|s| &s.name), "{name}");
        assert!(info.schema.typed().unwrap().root().field("metadata").is_some(), "{name}");
        assert!(
            info.list_schema.as_ref().is_none_or(|list| list
                .typed()
                .unwrap()
                .root()
                .field("items")
                .is_some()),
            "{name}"
        );
        let gvk = format!("{}/{}/{name}", info.gvk.group, info.gvk.version);
        assert_eq!(info.schema.typed().unwrap().root().gvks, [gvk.into()]);
        assert_eq!(info.status.is_some(), info.subresource("status").is_some(), "{name}");
        for owned in info.status.iter().flat_map(|s| &s.owned_fields) {
            assert!(info.schema.typed().unwrap().root().field(owned).is_some(), "{name}.{owned}");
        }
    }
}

#[test]
fn field_numbers_are_unique() {
    let kinds = Kinds::builtin().unwrap();
    for ty in kinds.types().iter() {
        let fields = ty.fields.iter().filter(|field| field.embedded_in.is_none() && field.number != 0);
        let numbers: Vec<_> = fields.map(|field| field.number).collect();
        assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), numbers.len(), "{}", ty.name);
        for field in &ty.fields {
            assert!(field.merge_key.is_none() || field.patch.merge, "{}.{}", ty.name, field.name);
            assert!(matches!(field.ty, FieldType::List(_)) || field.list_keys.is_empty());
        }
    }
}

#[test]
fn kinds_are_in_discovery_order() {
    let kinds = Kinds::builtin().unwrap();
    let order: Vec<String> = kinds.iter().map(|k| k.group_resource().to_string()).collect();
    let position_of = |name: &str| order.iter().position(|other| other == name).unwrap();
    let ascending = [
        "bindings",
        "services",
        "apiservices.apiregistration.k8s.io",
        "deployments.apps",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "endpointslices.discovery.k8s.io",
    ];
    assert!(ascending.iter().map(|name| position_of(name)).is_sorted(), "{order:?}");
    let served: Vec<String> = kinds.served_group_versions().map(|g| g.group_version.to_string()).collect();
    let first = ["apiregistration.k8s.io/v1", "v1", "apps/v1", "events.k8s.io/v1"];
    assert_eq!(served[..4], first);
    let autoscaling: Vec<&String> = served.iter().filter(|gv| gv.starts_with("autoscaling/")).collect();
    assert_eq!(autoscaling, ["autoscaling/v2", "autoscaling/v1"]);
}

#[test]
fn priorities_are_those_of_upstream() {
    let kinds = Kinds::builtin().unwrap();
    let rows =
        [("", "v1", 18_000, 1), ("autoscaling", "v2", 17_500, 30), ("resource.k8s.io", "v1", 16_200, 21)];
    for (group, version, group_priority, version_priority) in rows {
        let info = kinds.priority(&GroupVersion::new(group, version)).unwrap();
        assert_eq!(
            (info.group_priority, info.version_priority, info.has_api_service),
            (group_priority, version_priority, true)
        );
    }
    let apiregistration = kinds.priority(&GroupVersion::new("apiregistration.k8s.io", "v1")).unwrap();
    assert!(!apiregistration.has_api_service);
    assert_eq!(kinds.priority(&GroupVersion::new("example.com", "v1")), None);
}

#[test]
fn fields_have_the_order_of_upstreams_types() {
    let kinds = Kinds::builtin().unwrap();
    let services = kinds.by_resource(&GroupVersionResource::new("", "v1", "services")).unwrap().clone();
    let types = services.schema.typed().unwrap().types();
    for (name, first) in [
        ("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", ["apiVersion", "kind", "name"]),
        ("io.k8s.api.core.v1.ServicePort", ["name", "protocol", "appProtocol"]),
        ("io.k8s.api.networking.v1.HTTPIngressPath", ["path", "pathType", "backend"]),
    ] {
        let fields = types.by_name(name).unwrap().fields.iter().map(|field| &*field.name);
        assert_eq!(fields.take(3).collect::<Vec<_>>(), first, "{name}");
    }
}

#[test]
fn special_rules_of_kinds_are_loaded() {
    let kinds = Kinds::builtin().unwrap();
    let get = |group: &str, resource: &str| {
        kinds.by_resource(&GroupVersionResource::new(group, "v1", resource)).unwrap().clone()
    };
    let services = get("", "services");
    assert!(
        services.allow_create_on_update
            && services.allow_unconditional_update
            && services.deletion.returns_object
    );
    let leases = get("coordination.k8s.io", "leases");
    assert!(leases.allow_create_on_update && !leases.allow_unconditional_update);
    let apiservices = get("apiregistration.k8s.io", "apiservices");
    assert_eq!(apiservices.status.as_ref().unwrap().kept_metadata.len(), 4);
    assert!(!apiservices.generation.is_managed() && !apiservices.deletion.returns_object);
    assert!(!get("", "namespaces").has_verb("deletecollection"));
    let proxy = services.subresource("proxy").unwrap();
    assert_eq!(
        (proxy.kind.kind.as_str(), proxy.has_verb("get"), proxy.has_verb("list")),
        ("ServiceProxyOptions", true, false)
    );
}

#[test]
fn an_invalid_description_is_rejected_with_its_name() {
    let rows = [
        ("[{\"colour\":1}]", "unknown field"),
        (r#"[{"types":{"p":{"A":{"fields":{"x":{"type":"B"}}}}}}]"#, "type p.B is used and not described"),
        (r#"[{"types":{"p":{"A":{}}}},{"types":{"p":{"A":{}}}}]"#, "type p.A has two descriptions"),
        (
            r#"[{"kinds":[{"kind":"K","version":"v1","type":"p.K","resource":"ks","singular":"k","namespaced":true,"verbs":[]}]}]"#,
            "kind K: p.K is not described",
        ),
    ];
    for (text, want) in rows {
        let error = parse(text.as_bytes(), "[]").unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}
