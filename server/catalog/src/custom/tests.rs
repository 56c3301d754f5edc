//! Compares documents of definitions with those of a kube-apiserver, and tests which documents a change affects.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_kinds::Kinds;
use portico_machinery::Object;
use portico_machinery::digest::sha256_hex;
use portico_machinery::discovery::{ApiResourceList, VersionDiscovery};
use portico_machinery::openapi::SpecV2;
use portico_registry::{DefinitionFacts, StoredObject};
use portico_store::{Indexed, Key, Record, Resource, Value};

use super::*;
use crate::local::tests::{assert_entries, recorded, without_descriptions};

/// Returns the definitions given to the kube-apiserver: two of one group, which use all features of schemas.
fn recorded_definitions() -> Vec<Object> {
    let all = format!("{{\"all\":{}}}", include_str!("testdata/definitions.json"));
    let all = Object::from_json(all.as_bytes()).unwrap();
    all.at(&["all"]).items().map(|one| Object::from_node(one.node().unwrap()).unwrap()).collect()
}

/// Returns a definition with the status that the controllers set.
fn establish(mut object: Object, revision: i64) -> StoredObject {
    let names = object.get(&["spec", "names"]).unwrap();
    object.put(&["status", "acceptedNames"], names);
    let condition = BTreeMap::from([("type", "Established"), ("status", "True")]);
    object.set(&["status", "conditions"], [condition]);
    stored_object(&object, revision)
}

fn stored_object(object: &Object, revision: i64) -> StoredObject {
    let resource = Resource::new("apiextensions.k8s.io", "customresourcedefinitions");
    let key = Key::new(&resource, "", object.str_at("metadata.name"));
    let value = Value::new(object.to_json(), Indexed::default());
    StoredObject::new(Arc::new(Record { key, revision, value }))
}

fn definition(stored: &StoredObject) -> Definition {
    Definition::new(Arc::new(DefinitionFacts::read(stored.record().value.json()).unwrap()), stored)
}

/// Applies changes of definitions; returns the groups whose documents changed.
fn change(
    definitions: &mut Definitions,
    stored_definitions: impl IntoIterator<Item = StoredObject>,
) -> BTreeMap<String, Option<Group>> {
    let changes =
        stored_definitions.into_iter().map(|stored| (stored.name().to_owned(), Some(definition(&stored))));
    let kinds = Kinds::all().unwrap();
    let changed = definitions.change(kinds.types(), changes.collect::<Vec<_>>());
    changed.into_iter().map(|(gv, group)| (gv.version, group)).collect()
}

fn groups() -> BTreeMap<String, Group> {
    let groups = change(
        &mut Definitions::default(),
        recorded_definitions().into_iter().map(|object| establish(object, 1)),
    );
    groups.into_iter().map(|(version, group)| (version, group.unwrap())).collect()
}

/// Parses a document and replaces long descriptions by their digests: the recordings contain no texts of upstream.
fn with_digests(json: &[u8]) -> Object {
    fn digest(value: &mut serde_json::Value) {
        if let Some(serde_json::Value::String(text)) =
            value.get_mut("description").filter(|text| text.as_str().is_some_and(|text| text.len() > 64))
        {
            *text = format!("sha256:{}", sha256_hex(text.as_bytes()));
        }
        match value {
            serde_json::Value::Object(fields) => fields.values_mut().for_each(digest),
            serde_json::Value::Array(items) => items.iter_mut().for_each(digest),
            _ => {}
        }
    }
    let mut document = serde_json::from_slice(json).unwrap();
    digest(&mut document);
    Object::from_json(document.to_string().as_bytes()).unwrap()
}

#[test]
fn the_v3_document_equals_upstreams() {
    let recorded_document = recorded(include_str!("testdata/v3.json"));
    for (version, group) in groups() {
        let generated = without_descriptions(&group.openapi_v3_with(None));
        let recorded_part = |part: &str| recorded_document.object_at(&version).unwrap().get(&[part]).unwrap();
        assert_eq!(generated.get(&["info"]), Some(recorded_part("info")));
        let names: Vec<String> =
            generated.at(&["components", "schemas"]).entries().map(|(n, _)| n.to_owned()).collect();
        assert_eq!(
            serde_json::to_string(&names).unwrap(),
            serde_json::to_string(&recorded_part("types").0).unwrap()
        );
        let own = Object::from_node(recorded_part("own")).unwrap();
        let mut schemas = with_digests(&group.openapi_v3_with(None)).object_at("components").unwrap();
        schemas = schemas.object_at("schemas").unwrap();
        for (name, _) in own.cursor().entries() {
            assert_eq!(schemas.get(&[name]), own.get(&[name]), "{name}");
        }
        if version == "v1" {
            assert_entries(&generated, &recorded_document.object_at("v1").unwrap(), &["paths"]);
        }
    }
}

#[test]
fn the_v2_part_equals_upstreams() {
    let recorded_document = recorded(include_str!("testdata/v2.json"));
    let own = recorded_document.object_at("own").unwrap();
    let mut compared = 0;
    for (version, group) in groups() {
        let json = group.openapi_v2_with(None);
        let part = with_digests(&json).object_at("definitions").unwrap();
        for (name, _) in own.cursor().entries().filter(|(name, _)| name.contains(&format!(".{version}."))) {
            assert_eq!(part.get(&[name]), own.get(&[name]), "{name}");
            compared += 1;
        }
        if version == "v1" {
            assert_entries(&without_descriptions(&json), &recorded_document, &["paths"]);
        }
        let part = SpecV2::parse(&json).unwrap();
        let text = String::from_utf8(json).unwrap();
        for (_, name) in portico_machinery::openapi::references(&text) {
            assert!(part.definitions.contains_key(name) || part.parameters.contains_key(name), "{name}");
        }
    }
    assert_eq!(compared, own.cursor().entries().count());
}

#[test]
fn discovery_equals_upstreams() {
    let recorded_document = recorded(include_str!("testdata/discovery.json"));
    for (version, group) in groups() {
        let list: ApiResourceList = serde_json::from_slice(&group.resource_list()).unwrap();
        assert_eq!(list, recorded_document.decode(&["lists", &version]).unwrap(), "{version}");
        let aggregated: VersionDiscovery = serde_json::from_slice(&group.discovery()).unwrap();
        assert_eq!(aggregated, recorded_document.decode(&["aggregated", &version]).unwrap(), "{version}");
    }
}

#[test]
fn a_definition_is_published_from_establishment_to_deletion() {
    let mut definitions = Definitions::default();
    let lanterns = recorded_definitions().remove(0);
    assert!(change(&mut definitions, [stored_object(&lanterns, 1)]).is_empty());
    let changed = change(&mut definitions, [establish(lanterns.clone(), 2)]);
    assert_eq!(changed.keys().collect::<Vec<_>>(), ["v1", "v1alpha1", "v1beta1"]);
    let removed = definitions
        .change(Kinds::all().unwrap().types(), [(lanterns.str_at("metadata.name").to_owned(), None)]);
    assert!(removed.len() == 3 && removed.iter().all(|(_, group)| group.is_none()));
}

#[test]
fn a_terminating_definition_allows_no_creation() {
    let mut definitions = Definitions::default();
    let mut lanterns = recorded_definitions().remove(0);
    change(&mut definitions, [establish(lanterns.clone(), 1)]);
    lanterns.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
    let changed = change(&mut definitions, [establish(lanterns, 2)]);
    let list: ApiResourceList =
        serde_json::from_slice(&changed["v1"].as_ref().unwrap().resource_list()).unwrap();
    let verbs: Vec<_> = list.resources.iter().map(|r| r.verbs.join(" ")).collect();
    assert_eq!(verbs, ["delete deletecollection get list watch", "get patch update", "get patch update"]);
}

#[test]
fn a_change_affects_only_the_group_versions_of_its_definition() {
    let mut definitions = Definitions::default();
    let [lanterns, apples] = <[Object; 2]>::try_from(recorded_definitions()).unwrap();
    change(&mut definitions, [establish(lanterns.clone(), 1), establish(apples.clone(), 2)]);
    // A change of conditions or labels does not affect documents.
    let mut labelled = apples.clone();
    labelled.set(&["metadata", "labels", "a"], "b");
    assert!(change(&mut definitions, [establish(labelled, 3)]).is_empty());
    let mut renamed = apples;
    renamed.set(&["metadata", "generation"], 2);
    renamed.set(&["spec", "names", "shortNames"], ["ap"]);
    let changed = change(&mut definitions, [establish(renamed, 4)]);
    assert_eq!(changed.keys().collect::<Vec<_>>(), ["v1"]);
    let list: ApiResourceList =
        serde_json::from_slice(&changed["v1"].as_ref().unwrap().resource_list()).unwrap();
    let names: Vec<_> = list.resources.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["apples", "apples/status", "lanterns", "lanterns/status", "lanterns/scale"]);
}

#[test]
fn document_names_depend_on_their_inputs() {
    let names = |group: &Group| (group.discovery_name("d"), group.openapi_name("v3", "data"));
    let (before, again) = (groups(), groups());
    assert_eq!(names(&before["v1"]), names(&again["v1"]));
    assert_ne!(names(&before["v1"]).0, names(&before["v1beta1"]).0);
    assert_ne!(before["v1"].openapi_name("v3", "data"), before["v1"].openapi_name("v3", "other data"));
    let mut definitions = Definitions::default();
    let mut lanterns = recorded_definitions().remove(0);
    let first = change(&mut definitions, [establish(lanterns.clone(), 1)]);
    // A change of the schema affects OpenAPI but not discovery.
    lanterns.set(&["metadata", "generation"], 2);
    let second = change(&mut definitions, [establish(lanterns, 2)]);
    let (first, second) = (first["v1"].as_ref().unwrap(), second["v1"].as_ref().unwrap());
    assert_eq!(first.discovery_name("d"), second.discovery_name("d"));
    assert_ne!(first.openapi_name("v3", ""), second.openapi_name("v3", ""));
}

#[test]
fn a_schema_that_cannot_be_published_affects_no_other_definition() {
    let [mut lanterns, apples] = <[Object; 2]>::try_from(recorded_definitions()).unwrap();
    lanterns.edit(&["spec"], |spec| {
        spec.edit_each(&["versions"], |version| version.set(&["schema", "openAPIV3Schema", "$ref"], "#/x"));
    });
    let all = [establish(lanterns, 1), establish(apples, 1)];
    let changed = change(&mut Definitions::default(), all);
    let document = Object::from_json(&changed["v1"].as_ref().unwrap().openapi_v3()).unwrap();
    let schemas = document.at(&["components", "schemas"]);
    let keys: Vec<_> = schemas.key("net.example.disc.v1.Lantern").entries().map(|(key, _)| key).collect();
    assert_eq!(keys, ["type", "x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"]);
    assert_eq!(schemas.key("net.example.disc.v1.Apple").field("properties").len(), 4);
}
