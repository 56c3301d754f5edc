//! Tests of the types of kinds with recorded responses of kube-apiserver and with random objects of every kind.

use std::sync::Arc;

use portico_machinery::Object;
use portico_machinery::gvk::GroupVersionResource;
use portico_machinery::table::Cell;
use portico_schema::model::ListType;
use portico_schema::{Field, FieldType, Format, Schema, TypeSet, same_content};
use proptest::prelude::*;

use crate::{CellRule, KindInfo, Kinds};

fn kind(group: &str, resource: &str) -> Arc<KindInfo> {
    let kinds = Kinds::builtin().unwrap();
    kinds.by_resource(&GroupVersionResource::new(group, "v1", resource)).unwrap().clone()
}

fn encoded(info: &KindInfo, body: &str) -> String {
    let mut object = info.schema.decode(body.as_bytes(), Format::Json, &info.gvk).unwrap().object;
    info.schema.default(&mut object);
    info.schema.normalize(&mut object);
    String::from_utf8(object.to_json()).unwrap()
}

#[test]
fn objects_are_encoded_as_upstream_returns_them() {
    let rows = [
        (
            ("discovery.k8s.io", "endpointslices"),
            r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],"conditions":{"ready":true},"nodeName":"n1","zone":"z1"},{"addresses":["10.1.2.4"]}],"metadata":{"name":"web-1"},"ports":[{"port":80},{"name":"udp","port":53,"protocol":"UDP"}]}"#,
            r#"{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"web-1"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],"conditions":{"ready":true},"nodeName":"n1","zone":"z1"},{"addresses":["10.1.2.4"],"conditions":{}}],"ports":[{"name":"","protocol":"TCP","port":80},{"name":"udp","protocol":"UDP","port":53}]}"#,
        ),
        (
            ("discovery.k8s.io", "endpointslices"),
            r#"{"addressType":"IPv4","metadata":{"name":"e"},"endpoints":[]}"#,
            r#"{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"e"},"addressType":"IPv4","endpoints":null,"ports":null}"#,
        ),
        (
            ("", "endpoints"),
            r#"{"metadata":{"name":"web"},"subsets":[{"ports":[{"port":8080,"name":"http"}],"addresses":[{"ip":"10.1.0.2"}],"notReadyAddresses":[]}]}"#,
            r#"{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"web"},"subsets":[{"addresses":[{"ip":"10.1.0.2"}],"ports":[{"name":"http","port":8080,"protocol":"TCP"}]}]}"#,
        ),
        (
            ("apiregistration.k8s.io", "apiservices"),
            r#"{"spec":{"versionPriority":15,"service":{"name":"s","namespace":"n"},"group":"g","version":"v1","groupPriorityMinimum":1000,"insecureSkipTLSVerify":false},"metadata":{"name":"v1.g","creationTimestamp":null,"labels":{"b":"2","a":"1"}},"status":{}}"#,
            r#"{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"v1.g","labels":{"a":"1","b":"2"}},"spec":{"service":{"namespace":"n","name":"s","port":443},"group":"g","version":"v1","groupPriorityMinimum":1000,"versionPriority":15},"status":{}}"#,
        ),
        (
            ("", "namespaces"),
            r#"{"metadata":{"name":"n"}}"#,
            r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"},"spec":{},"status":{"phase":"Active"}}"#,
        ),
        (
            ("", "secrets"),
            r#"{"metadata":{"name":"s"},"data":{"b":"","a":"YQ=="}}"#,
            r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"a":"YQ==","b":""},"type":"Opaque"}"#,
        ),
        (
            ("coordination.k8s.io", "leases"),
            r#"{"metadata":{"name":"l"},"spec":{"renewTime":"2026-01-02T03:04:05.000006Z","holderIdentity":"","leaseTransitions":0}}"#,
            r#"{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"l"},"spec":{"holderIdentity":"","renewTime":"2026-01-02T03:04:05.000006Z","leaseTransitions":0}}"#,
        ),
        (
            ("", "events"),
            r#"{"metadata":{"name":"e"},"count":0}"#,
            r#"{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}"#,
        ),
        (
            ("", "services"),
            r#"{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}"#,
            r#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"},"spec":{"ports":[{"protocol":"TCP","port":80,"targetPort":0}],"type":"ClusterIP","sessionAffinity":"None"},"status":{"loadBalancer":{}}}"#,
        ),
    ];
    for ((group, resource), body, want) in rows {
        assert_eq!(encoded(&kind(group, resource), body), want);
    }
}

#[test]
fn bodies_are_refused_as_upstream_refused_them() {
    let apiservices = kind("apiregistration.k8s.io", "apiservices");
    let configmaps = kind("", "configmaps");
    let rows = [
        (
            &apiservices,
            "{not json",
            "the object provided is unrecognized (must be of type APIService): couldn't get version/kind; json parse error: invalid character 'n' looking for beginning of object key string ({not json)",
        ),
        (
            &apiservices,
            r#"{"apiVersion":"v1","kind":"ConfigMap"}"#,
            r#"ConfigMap in version "v1" cannot be handled as a APIService: no kind "ConfigMap" is registered for version "v1""#,
        ),
        (
            &apiservices,
            r#"{"spec":{"versionPriority":"x"}}"#,
            r#"APIService in version "v1" cannot be handled as a APIService: json: cannot unmarshal string into Go struct field APIServiceSpec.spec.versionPriority of type int32"#,
        ),
        (
            &configmaps,
            r#"{"data":{"k":1}}"#,
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string"#,
        ),
        (
            &kind("", "secrets"),
            r#"{"data":{"k":"no base64!"}}"#,
            r#"Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 2"#,
        ),
    ];
    for (info, body, want) in rows {
        let status = info.schema.decode(body.as_bytes(), Format::Json, &info.gvk).unwrap_err().status();
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (400, "BadRequest", want));
    }
    let decode =
        |info: &KindInfo, body: &str| info.schema.decode(body.as_bytes(), Format::Json, &info.gvk).unwrap();
    let strict =
        decode(&apiservices, r#"{"spec":{"colour":"red"}}"#).strict_status(&apiservices.gvk).unwrap();
    assert_eq!(
        strict.message,
        r#"APIService in version "v1" cannot be handled as a APIService: strict decoding error: unknown field "spec.colour""#
    );
    let strict = decode(&configmaps, r#"{"metadata":{"name":"x","colour":"red"},"dota":1}"#)
        .strict_status(&configmaps.gvk)
        .unwrap();
    assert_eq!(
        strict.message,
        r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.colour", unknown field "dota""#
    );
}

#[test]
fn patches_of_recorded_objects_give_recorded_results() {
    let configmaps = kind("", "configmaps");
    let patched = |current: &str, patch: &str| {
        let current = Object::from_json(current.as_bytes()).unwrap();
        let result = configmaps.schema.strategic_merge(&current, patch.as_bytes()).unwrap();
        String::from_utf8(result.to_json()).unwrap()
    };
    assert_eq!(
        patched(
            r#"{"metadata":{"finalizers":["example.com/a","example.com/b"]}}"#,
            r#"{"metadata":{"finalizers":["example.com/c","example.com/a"]}}"#
        ),
        r#"{"metadata":{"finalizers":["example.com/c","example.com/a","example.com/b"]}}"#
    );
    assert_eq!(
        patched(
            r#"{"metadata":{"finalizers":["example.com/c","example.com/b"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a","example.com/c"]}}"#
        ),
        r#"{"metadata":{"finalizers":["example.com/b"]}}"#
    );
    let wrong = Object::from_json(br#"{"data":[1]}"#).unwrap();
    let status = configmaps.schema.retype(&wrong, &configmaps.gvk).unwrap_err().patch_status("[]");
    assert_eq!((status.code, status.details.unwrap().causes[0].field.as_str()), (422, "patch"));
}

#[test]
fn content_comparison_ignores_revision_and_times_of_managed_fields() {
    let object = |rv: &str, time: &str, data: &str| {
        let json = format!(
            r#"{{"metadata":{{"resourceVersion":"{rv}","managedFields":[{{"manager":"m","time":"{time}"}}]}},"data":{{"k":"{data}"}}}}"#
        );
        Object::from_json(json.as_bytes()).unwrap()
    };
    assert!(same_content(&object("1", "a", "x"), &object("2", "b", "x")));
    assert!(!same_content(&object("1", "a", "x"), &object("1", "a", "y")));
    assert!(!same_content(&object("1", "a", "x"), &Object::default()));
}

#[test]
fn an_equal_quantity_is_no_generation_change() {
    let deployments = kind("apps", "deployments");
    let object = |cpu: &str| {
        let container = format!(r#"{{"name":"c","resources":{{"requests":{{"cpu":"{cpu}"}}}}}}"#);
        let spec = format!(r#"{{"template":{{"spec":{{"containers":[{container}]}}}}}}"#);
        Object::from_json(format!(r#"{{"kind":"Deployment","spec":{spec}}}"#).as_bytes()).unwrap()
    };
    for (cpu, want) in [("1", false), ("1e0", false), ("1000m", false), ("1001m", true), ("one", true)] {
        let changes =
            deployments.generation.is_generation_change(&deployments.schema, &object(cpu), &object("1"));
        assert_eq!(changes, want, "{cpu}");
    }
}

#[test]
fn generation_follows_the_data() {
    let slices = kind("discovery.k8s.io", "endpointslices");
    let object = |json: &str| Object::from_json(json.as_bytes()).unwrap();
    let old = object(r#"{"kind":"E","metadata":{"labels":{"a":"1"}},"addressType":"IPv4"}"#);
    let rows = [
        (
            r#"{"kind":"E","metadata":{"labels":{"a":"1"},"annotations":{"x":"y"}},"addressType":"IPv4"}"#,
            false,
        ),
        (r#"{"kind":"E","metadata":{"labels":{"a":"2"}},"addressType":"IPv4"}"#, true),
        (r#"{"kind":"E","metadata":{"labels":{"a":"1"}},"addressType":"IPv6"}"#, true),
        (r#"{"kind":"E","metadata":{"labels":{"a":"1"}},"addressType":"IPv4","ports":[]}"#, true),
    ];
    for (new, want) in rows {
        assert_eq!(slices.generation.is_generation_change(&slices.schema, &object(new), &old), want, "{new}");
    }
}

#[test]
fn an_empty_list_is_a_generation_change_if_configured() {
    let object = |json: &str| Object::from_json(json.as_bytes()).unwrap();
    for (group, resource, sent, want) in [
        ("networking.k8s.io", "networkpolicies", r#"{"spec":{"podSelector":{},"ingress":[]}}"#, true),
        ("networking.k8s.io", "networkpolicies", r#"{"spec":{"podSelector":{"matchLabels":{}}}}"#, true),
        ("networking.k8s.io", "networkpolicies", r#"{"spec":{"podSelector":{}}}"#, false),
        ("networking.k8s.io", "ingresses", r#"{"spec":{"rules":[]}}"#, false),
    ] {
        let info = kind(group, resource);
        let mut new = object(sent);
        let before = info.generation.before_normalization(&new);
        info.schema.normalize(&mut new);
        let lost = before.is_some_and(|before| info.generation.lost_empty(&before, &new));
        assert_eq!(lost, want, "{sent}");
    }
}

#[test]
fn cells_that_data_can_describe_need_no_code() {
    let object = Object::from_json(
        br#"{"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"a":"","b":""},"binaryData":{"c":""},"type":"x"}"#,
    )
    .unwrap();
    let cells = |info: &KindInfo| -> Vec<Option<Cell>> {
        info.columns.iter().skip(1).map(|c| c.cell.cell(&object)).collect()
    };
    let age = Some(Cell::Age(Some("2026-01-02T03:04:05Z".to_owned())));
    assert_eq!(cells(&kind("", "configmaps")), [Some(Cell::Integer(3)), age.clone()]);
    assert_eq!(cells(&kind("", "secrets")), [Some(Cell::text("x")), Some(Cell::Integer(2)), age]);
    assert_eq!(CellRule::Function { name: "x".to_owned() }.cell(&object), None);
}

/// Generates random JSON for a type, similar to requests of clients.
fn random_json(types: &Arc<TypeSet>, ty: &FieldType, depth: u32) -> BoxedStrategy<String> {
    if let FieldType::Ref(id) = ty
        && let Some(shapes) = &types.get(*id).message
    {
        return random_shape(types, shapes, depth);
    }
    match types.resolve(ty) {
        FieldType::String => "[a-z]{0,3}".prop_map(|s| format!("{s:?}")).boxed(),
        FieldType::Int32 | FieldType::Int64 | FieldType::Number => {
            (0..3_i32).prop_map(|n: i32| n.to_string()).boxed()
        }
        FieldType::Bool => any::<bool>().prop_map(|b| b.to_string()).boxed(),
        FieldType::Bytes => {
            prop::sample::select(vec!["\"\"", "\"YQ==\"", "\"YWJj\""]).prop_map(str::to_owned).boxed()
        }
        FieldType::Time => prop::sample::select(vec!["null", "\"2026-01-02T03:04:05+01:00\""])
            .prop_map(str::to_owned)
            .boxed(),
        FieldType::MicroTime => prop::sample::select(vec!["null", "\"2026-01-02T03:04:05.123456Z\""])
            .prop_map(str::to_owned)
            .boxed(),
        FieldType::Quantity => Just("\"1Gi\"".to_owned()).boxed(),
        FieldType::IntOrString => {
            prop::sample::select(vec!["0", "7", "\"x\""]).prop_map(str::to_owned).boxed()
        }
        FieldType::Any | FieldType::AnyObject => {
            prop::sample::select(vec!["{}", r#"{"f:x":{".":{}}}"#]).prop_map(str::to_owned).boxed()
        }
        _ if depth == 0 => Just("null".to_owned()).boxed(),
        FieldType::List(of) => prop::collection::vec(random_json(types, of, depth - 1), 0..3)
            .prop_map(|items| format!("[{}]", items.join(",")))
            .boxed(),
        FieldType::Map(of) => {
            prop::collection::btree_map("[a-z]{1,3}", random_json(types, of, depth - 1), 0..3)
                .prop_map(|m| {
                    format!(
                        "{{{}}}",
                        m.iter().map(|(k, v)| format!("{k:?}:{v}")).collect::<Vec<_>>().join(",")
                    )
                })
                .boxed()
        }
        FieldType::Ref(id) => fields(types, &types.get(*id).fields, depth),
    }
}

/// Generates a value of one of these shapes.
fn random_shape(types: &Arc<TypeSet>, shapes: &[(FieldType, u32)], depth: u32) -> BoxedStrategy<String> {
    let each: Vec<_> = shapes.iter().map(|(shape, _)| random_json(types, shape, depth)).collect();
    match each.is_empty() || depth == 0 {
        true => Just("{}".to_owned()).boxed(),
        false => {
            prop::strategy::Union::new(each).prop_filter("a shape", |v| v != "null" && v != "[]").boxed()
        }
    }
}

fn fields(types: &Arc<TypeSet>, fields: &[Field], depth: u32) -> BoxedStrategy<String> {
    let each: Vec<_> = fields
        .iter()
        .filter(|f| f.number > 0)
        .map(|f| {
            let name = f.name.clone();
            let keys: Vec<Box<str>> = f.list_keys.iter().chain(&f.merge_key).cloned().collect();
            let like_a_map = f.clone();
            let value = random_json(types, &f.ty, depth - 1);
            let value = value.prop_map(move |json| without_duplicates(&like_a_map, &keys, json));
            prop::option::of(value).prop_map(move |v| v.map(|v| format!("\"{name}\":{v}")))
        })
        .collect();
    each.prop_shuffle()
        .prop_map(|parts| format!("{{{}}}", parts.into_iter().flatten().collect::<Vec<_>>().join(",")))
        .boxed()
}

/// Removes duplicates from a list that is a set or map. Clients do not send duplicates intentionally, and their treatment is
/// undefined.
fn without_duplicates(field: &Field, keys: &[Box<str>], json: String) -> String {
    use serde_json::Value;
    let is_set = field.list_type == Some(ListType::Set) || field.patch.merge;
    if keys.is_empty() && !is_set {
        return json;
    }
    let Ok(Value::Array(elements)) = serde_json::from_str(&json) else { return json };
    let mut seen = std::collections::HashSet::new();
    let key = |element: &Value| {
        let parts: Vec<_> = keys.iter().map(|key| element.get(&**key).unwrap_or(&Value::Null)).collect();
        if keys.is_empty() { element.to_string() } else { format!("{parts:?}") }
    };
    Value::Array(elements.into_iter().filter(|element| seen.insert(key(element))).collect()).to_string()
}

pub(crate) fn any_object() -> impl Strategy<Value = (Arc<KindInfo>, String)> {
    let kinds = Kinds::builtin().unwrap();
    let each: Vec<_> = kinds
        .iter()
        .map(|info| {
            let info = info.clone();
            let schema: Schema = info.schema.clone();
            fields(schema.typed().unwrap().types(), &schema.typed().unwrap().root().fields, 6)
                .prop_map(move |body| (info.clone(), body))
                .boxed()
        })
        .collect();
    prop::strategy::Union::new(each)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_object_of_any_kind_has_one_canonical_form((info, body) in any_object()) {
        let schema = &info.schema;
        let decoded = schema.decode(body.as_bytes(), Format::Json, &info.gvk).unwrap();
        prop_assert!(decoded.strict.is_empty(), "{:?}", decoded.strict);
        let mut object = decoded.object;
        schema.default(&mut object);
        schema.normalize(&mut object);
        let bytes = object.to_json();

        let mut again = object.clone();
        schema.normalize(&mut again);
        prop_assert_eq!(again.to_json(), bytes.clone(), "normalized again");
        schema.default(&mut again);
        schema.normalize(&mut again);
        prop_assert_eq!(again.to_json(), bytes.clone(), "defaulted again");

        let mut stored = schema.decode(&bytes, Format::Json, &info.gvk).unwrap().object;
        schema.normalize(&mut stored);
        prop_assert_eq!(String::from_utf8(stored.to_json()).unwrap(), String::from_utf8(bytes).unwrap(), "through storage");
        prop_assert!(same_content(&stored, &object));

        let sealed = schema.to_enveloped_protobuf(&object);
        let mut read = schema.decode(&sealed, Format::Protobuf, &info.gvk).unwrap().object;
        schema.default(&mut read);
        schema.normalize(&mut read);
        prop_assert_eq!(String::from_utf8(read.to_json()).unwrap(), String::from_utf8(object.to_json()).unwrap(), "through protobuf");
        prop_assert_eq!(schema.to_enveloped_protobuf(&read), sealed, "encoded to protobuf again");
        let empty = schema.strategic_merge(&object, b"{}").unwrap();
        prop_assert!(same_content(&empty, &object));
    }
}
