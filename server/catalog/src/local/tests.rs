//! Compares documents of the built-in kinds with those of a kube-apiserver, without descriptions.

use portico_kinds::Kinds;
use portico_machinery::Object;
use portico_machinery::discovery::{ApiResourceList, VersionDiscovery};
use portico_machinery::openapi::SpecV2;

use super::*;

fn fragment_of(group: &str, version: &str) -> Fragment {
    let kinds = Kinds::all().unwrap();
    let gv = GroupVersion::new(group, version);
    let members = kinds.of_group_version(&gv).cloned().collect();
    new_fragment(gv, members, kinds.types().clone())
}

/// Parses a document without the descriptions of operations, which the recordings do not contain.
pub(crate) fn without_descriptions(json: &[u8]) -> Object {
    let mut text = String::from_utf8(json.to_vec()).unwrap();
    for words in ["OK", "Created", "Accepted", "Unauthorized", "Bearer Token authentication"] {
        for (written, short) in
            [(format!("\"description\":\"{words}\","), ""), (format!("\"description\":\"{words}\""), "")]
        {
            text = text.replace(&written, short);
        }
    }
    Object::from_json(text.as_bytes()).unwrap()
}

pub(crate) fn recorded(json: &str) -> Object {
    Object::from_json(json.as_bytes()).unwrap()
}

/// Compares entry by entry, so that a difference reports its location.
pub(crate) fn assert_entries(generated: &Object, recorded_document: &Object, path: &[&str]) {
    let keys = |o: &Object| {
        let mut keys: Vec<_> = o.at(path).entries().map(|(k, _)| k.to_owned()).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(generated), keys(recorded_document), "{path:?}");
    for key in keys(recorded_document) {
        let at: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
        let text = |o: &Object| serde_json::to_string_pretty(&o.get(&at).unwrap().0).unwrap();
        assert_eq!(
            generated.get(&at),
            recorded_document.get(&at),
            "{key}\nours: {}\ntheirs: {}",
            text(generated),
            text(recorded_document)
        );
    }
}

/// Sorts `required`, which is a set; upstream's order is that of its source code.
fn sort_required(document: &mut Object) {
    let types: Vec<String> =
        document.at(&["components", "schemas"]).entries().map(|(name, _)| name.to_owned()).collect();
    for name in types {
        let required = ["components", "schemas", &name, "required"];
        if let Ok(mut names) = document.decode::<Vec<String>>(&required) {
            names.sort();
            document.set(&required, names);
        }
    }
}

/// The recorded document contains no descriptions, and no references that are wrapped only because of a description.
#[test]
fn the_v3_document_of_leases_equals_upstreams() {
    let mut generated = without_descriptions(&openapi::v3_document(
        &fragment_of("coordination.k8s.io", "v1").description(),
        CustomTypes::new(),
        None,
        "1.36",
    ));
    let mut recorded_document = recorded(include_str!("testdata/coordination_v3.json"));
    sort_required(&mut generated);
    sort_required(&mut recorded_document);
    assert_entries(&generated, &recorded_document, &["paths"]);
    assert_entries(&generated, &recorded_document, &["components", "schemas"]);
    assert_eq!(generated, recorded_document);
}

#[test]
fn the_v2_part_of_leases_equals_upstreams() {
    let generated = without_descriptions(&openapi::v2_part(
        &fragment_of("coordination.k8s.io", "v1").description(),
        CustomTypes::new(),
        None,
    ));
    let mut recorded_document = recorded(include_str!("testdata/coordination_v2.json"));
    // The path belongs to the group, not to the version.
    recorded_document.remove(&["paths", "/apis/coordination.k8s.io/"]);
    assert_entries(&generated, &recorded_document, &["paths"]);
    for name in ["Lease", "LeaseList", "LeaseSpec"] {
        let at = ["definitions", &format!("io.k8s.api.coordination.v1.{name}")];
        assert_eq!(generated.get(&at), recorded_document.get(&at), "{name}");
    }
    for name in ["DeleteOptions", "ObjectMeta", "Status", "WatchEvent"] {
        let at = ["definitions", &format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}")];
        assert_eq!(generated.get(&at), recorded_document.get(&at), "{name}");
    }
}

#[test]
fn every_reference_of_every_document_resolves() {
    let kinds = Kinds::all().unwrap();
    for info in kinds.served_group_versions() {
        let gv = &info.group_version;
        let fragment = fragment_of(&gv.group, &gv.version);
        let json = fragment.openapi_v2();
        let part = SpecV2::parse(&json).unwrap();
        let text = String::from_utf8(json).unwrap();
        for (section, name) in portico_machinery::openapi::references(&text) {
            let there = match section {
                portico_machinery::openapi::Section::Definitions => part.definitions.contains_key(name),
                portico_machinery::openapi::Section::Parameters => part.parameters.contains_key(name),
            };
            assert!(there, "{gv}: {name}");
        }
        let v3 = String::from_utf8(fragment.openapi_v3("1.36")).unwrap();
        let document = Object::from_json(v3.as_bytes()).unwrap();
        for (index, prefix) in v3.match_indices("#/components/schemas/") {
            let name = v3[index + prefix.len()..].split('"').next().unwrap();
            assert!(document.get(&["components", "schemas", name]).is_some(), "{gv}: {name}");
        }
        assert_eq!(document.at(&["components", "schemas"]).len(), part.definitions.len());
    }
}

#[test]
fn discovery_equals_upstreams() {
    let core: VersionDiscovery = serde_json::from_slice(&fragment_of("", "v1").discovery()).unwrap();
    let find = |name: &str| core.resources.iter().find(|r| r.resource == name).unwrap();
    let namespaces = serde_json::to_string(find("namespaces")).unwrap();
    let expected = concat!(
        r#"{"resource":"namespaces","responseKind":{"group":"","version":"","kind":"Namespace"},"scope":"Cluster","#,
        r#""singularResource":"namespace","verbs":["create","delete","get","list","patch","update","watch"],"#,
        r#""shortNames":["ns"],"subresources":[{"subresource":"finalize","responseKind":{"group":"","version":"","#,
        r#""kind":"Namespace"},"verbs":["update"]},{"subresource":"status","responseKind":{"group":"","version":"","#,
        r#""kind":"Namespace"},"verbs":["get","patch","update"]}]}"#
    );
    assert_eq!(namespaces, expected);
    let list: ApiResourceList =
        serde_json::from_slice(&fragment_of("apiregistration.k8s.io", "v1").resource_list()).unwrap();
    let names: Vec<_> = list.resources.iter().map(|r| (r.name.as_str(), r.verbs.len())).collect();
    assert_eq!(names, [("apiservices", 8), ("apiservices/status", 3)]);
    assert_eq!((list.api_version.as_str(), list.group_version.as_str()), ("v1", "apiregistration.k8s.io/v1"));
    let core: ApiResourceList = serde_json::from_slice(&fragment_of("", "v1").resource_list()).unwrap();
    assert_eq!((core.api_version.as_str(), core.group_version.as_str()), ("", "v1"));
    let hash =
        |name: &str| core.resources.iter().find(|r| r.name == name).unwrap().storage_version_hash.clone();
    // Values of an arbitrary cluster.
    assert_eq!((hash("services").as_str(), hash("namespaces/status").as_str()), ("0/CO1lhkEBI=", ""));
}

/// Compares the operations of some paths of the core group: method, action, parameters, status codes and response types.
#[test]
fn connect_paths_equal_upstreams() {
    let document = Object::from_json(&fragment_of("", "v1").openapi_v3("1.36")).unwrap();
    let names = |path: &[&str]| -> Vec<String> {
        let listed = document.at(path);
        listed.items().map(|p| p.field("name").str().to_owned()).collect()
    };
    let exec = "/api/v1/namespaces/{namespace}/pods/{name}/exec";
    let expected = ["command", "container", "name", "namespace", "stderr", "stdin", "stdout", "tty"];
    assert_eq!(names(&["paths", exec, "parameters"]), expected);
    assert_eq!(
        document.at(&["paths", exec, "post", "operationId"]).str(),
        "connectCoreV1PostNamespacedPodExec"
    );
    assert_eq!(document.at(&["paths", exec, "get", "x-kubernetes-action"]).str(), "connect");
    let proxy = "/api/v1/namespaces/{namespace}/services/{name}/proxy/{path}";
    assert_eq!(names(&["paths", proxy, "parameters"]), ["name", "namespace", "path", "path"]);
    let methods: Vec<_> = document.at(&["paths", proxy]).entries().map(|(k, _)| k.to_owned()).collect();
    assert_eq!(methods, ["delete", "get", "head", "options", "patch", "post", "put", "parameters"]);
    let log = "/api/v1/namespaces/{namespace}/pods/{name}/log";
    assert_eq!(names(&["paths", log, "parameters"]).len(), 12);
    let content = ["paths", log, "get", "responses", "200", "content"];
    let media: Vec<_> = document.at(&content).entries().map(|(k, _)| k.to_owned()).collect();
    assert_eq!(
        media,
        ["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]
    );
    let node = "/api/v1/nodes/{name}/proxy";
    assert_eq!(names(&["paths", node, "parameters"]), ["name", "path"]);
    let union = ["components", "schemas", "io.k8s.api.core.v1.SeccompProfile", "x-kubernetes-unions"];
    assert_eq!(document.at(&union).len(), 1);
}

#[test]
fn document_names_depend_on_all_inputs() {
    let name = |fragment: &Fragment| fragment.openapi_inputs("data");
    let apps = fragment_of("apps", "v1");
    assert_eq!(name(&apps), name(&fragment_of("apps", "v1")));
    assert_ne!(name(&apps), name(&fragment_of("batch", "v1")));
    let mut fewer = apps.clone();
    fewer.kinds.pop();
    assert_ne!(name(&apps), name(&fewer));
    assert_ne!(apps.openapi_inputs("data"), apps.openapi_inputs("other data"));
}
