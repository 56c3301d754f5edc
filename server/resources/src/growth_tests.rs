//! Tests that validation time grows linearly with the length of each list and map of each kind.
//!
//! The tests detect quadratic validation, such as a scan of the whole list for each of its elements.

use std::time::Duration;

use cpu_time::ThreadTime;
use portico_kinds::Kinds;
use portico_machinery::Object;
use portico_schema::{FieldType, TypeId, Typed};

use portico_registry::ServedResource;
use portico_validation::{self as validation, MetaRules};

/// Number of elements of the short list, and factor between the lengths of both lists.
const ELEMENTS: usize = 75;
const GROWTH_FACTOR: usize = 8;
/// Limit of the factor between both times: the geometric mean of 8 (linear) and 64 (quadratic).
const MAX_GROWTH: f64 = 22.6;
/// Times below this limit cannot be measured reliably and are accepted.
const MIN_TIME: Duration = Duration::from_millis(4);
/// Maximum number of measurements, because other load can disturb a measurement.
const ATTEMPTS: usize = 25;
/// Maximum depth of the search for lists.
const MAX_DEPTH: usize = 7;

/// One step from the root of an object to a list or map.
#[derive(Clone, Debug)]
enum Step {
    Field(String),
    /// Step into the only element of a list.
    Element,
    /// Step into the only entry of a map.
    Entry,
}

/// Collects the lists and maps below a type, with their paths.
fn find_collections(
    typed: &Typed,
    field_type: &FieldType,
    (path, enclosing): (&mut Vec<Step>, &mut Vec<TypeId>),
    found: &mut Vec<(Vec<Step>, FieldType)>,
) {
    if path.len() > MAX_DEPTH {
        return;
    }
    let types = typed.types();
    match types.resolve(field_type) {
        FieldType::List(element) => {
            found.push((path.clone(), field_type.clone()));
            path.push(Step::Element);
            find_collections(typed, element, (path, enclosing), found);
            path.pop();
        }
        FieldType::Map(value) => {
            found.push((path.clone(), field_type.clone()));
            path.push(Step::Entry);
            find_collections(typed, value, (path, enclosing), found);
            path.pop();
        }
        // A recursive type contains the same lists again.
        FieldType::Ref(id) if !enclosing.contains(id) => {
            enclosing.push(*id);
            for field in &types.get(*id).fields {
                path.push(Step::Field(field.name.to_string()));
                find_collections(typed, &field.ty, (path, enclosing), found);
                path.pop();
            }
            enclosing.pop();
        }
        _ => {}
    }
}

/// Returns the JSON of a value of a type. Strings and numbers contain `at`.
fn value_json(typed: &Typed, field_type: &FieldType, at: usize, depth: usize) -> String {
    let types = typed.types();
    match types.resolve(field_type) {
        FieldType::String | FieldType::IntOrString => format!("\"e{at}\""),
        FieldType::Int32 | FieldType::Int64 | FieldType::Number => at.to_string(),
        FieldType::Quantity => format!("\"{at}\""),
        FieldType::Ref(id) if depth > 0 => {
            let plain = |field_type: &FieldType| {
                matches!(field_type, FieldType::String | FieldType::Int32 | FieldType::Int64)
            };
            let fields = types.get(*id).fields.iter().filter(|field| plain(types.resolve(&field.ty)));
            map_json(
                fields.map(|field| (field.name.to_string(), value_json(typed, &field.ty, at, depth - 1))),
            )
        }
        FieldType::Ref(_) | FieldType::Map(_) => "{}".to_owned(),
        FieldType::List(_) => "[]".to_owned(),
        _ => "null".to_owned(),
    }
}

/// Returns the JSON of a map.
fn map_json(entries: impl Iterator<Item = (String, String)>) -> String {
    let entries = entries.map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// Returns the JSON of a list or map with `count` elements.
fn collection_json(typed: &Typed, field_type: &FieldType, count: usize) -> String {
    match typed.types().resolve(field_type) {
        FieldType::Map(values) => {
            map_json((0..count).map(|at| (format!("e{at}"), value_json(typed, values, at, 1))))
        }
        FieldType::List(elements) => {
            let elements: Vec<String> = (0..count).map(|at| value_json(typed, elements, at, 1)).collect();
            format!("[{}]", elements.join(","))
        }
        _ => "null".to_owned(),
    }
}

/// Returns an object that contains only `value`, at `path`.
fn object_with(served: &ServedResource, path: &[Step], value: String) -> Object {
    let json = path.iter().rev().fold(value, |json, step| match step {
        Step::Field(name) => format!("{{\"{name}\":{json}}}"),
        Step::Entry => format!("{{\"e\":{json}}}"),
        Step::Element => format!("[{json}]"),
    });
    let mut object = Object::from_json(json.as_bytes()).unwrap();
    object.set(&["kind"], &served.info.gvk.kind);
    object.set(&["apiVersion"], &served.api_version);
    object.set(&["metadata", "name"], "name");
    if served.info.namespaced {
        object.set(&["metadata", "namespace"], "default");
    }
    object
}

/// Validates the creation of an object, and an update without changes.
fn check(served: &ServedResource, object: &Object) {
    let info = served.stored_info();
    for old in [None, Some(object)] {
        let mut errors = Vec::new();
        match old {
            None => validation::validate_create(object, MetaRules::from_kind(&served.info), &mut errors),
            Some(old) => {
                validation::validate_update(object, old, MetaRules::from_kind(&served.info), &mut errors)
            }
        }
        errors.extend(info.schema.validate(object));
        served.strategies.main.validate_with_kind(info, object, old, &mut errors);
    }
}

/// Returns both times if they grow too much.
fn excessive_growth(served: &ServedResource, small: &Object, large: &Object) -> Option<(Duration, Duration)> {
    let min_time = |object: &Object, before: Duration| {
        let started = ThreadTime::now();
        check(served, object);
        before.min(started.elapsed())
    };
    let (mut of_small, mut of_large) = (Duration::MAX, Duration::MAX);
    for _ in 0..ATTEMPTS {
        of_large = min_time(large, of_large);
        if of_large < MIN_TIME {
            return None;
        }
        of_small = min_time(small, of_small);
        if of_large.as_secs_f64() <= MAX_GROWTH * of_small.as_secs_f64() {
            return None;
        }
    }
    Some((of_small, of_large))
}

#[test]
fn validation_time_grows_linearly_with_each_list_and_map() {
    let kinds = Kinds::builtin().unwrap();
    let resources = crate::table().resources(&kinds);
    let (mut count, mut failures) = (0, Vec::new());
    for info in kinds.iter().filter(|info| info.stored && info.is_storage_version()) {
        let Some(served) = resources.by_kind(&info.gvk) else { continue };
        let Some(typed) = info.schema.typed() else { continue };
        let mut found = Vec::new();
        for field in &typed.root().fields {
            let mut path = vec![Step::Field(field.name.to_string())];
            find_collections(typed, &field.ty, (&mut path, &mut Vec::new()), &mut found);
        }
        for (path, field_type) in found {
            count += 1;
            let object = |count| object_with(served, &path, collection_json(typed, &field_type, count));
            if let Some((small, large)) =
                excessive_growth(served, &object(ELEMENTS), &object(GROWTH_FACTOR * ELEMENTS))
            {
                failures.push(format!("{} {path:?}: {small:?} becomes {large:?}", info.gvk.kind));
            }
        }
    }
    assert!(count > 500, "{count} lists and maps");
    assert!(failures.is_empty(), "of {count}:\n{}", failures.join("\n"));
}
