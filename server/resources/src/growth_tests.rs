//! Tests that validation time grows linearly with the length of each list and map of each kind.
//!
//! These tests find scans of a list for each of its elements, which no other test has found.

use std::time::Duration;

use cpu_time::ThreadTime;
use portico_kinds::Kinds;
use portico_machinery::Object;
use portico_schema::{FieldType, TypeId, Typed};

use portico_registry::ServedResource;
use portico_validation::{self as validation, MetaRules};

/// Number of elements of the short list, and factor between the lengths of both lists.
const ELEMENTS: usize = 75;
const TIMES: usize = 8;
/// Limit of the factor between both times: the geometric mean of 8 (linear) and 64 (quadratic).
const MAX_GROWTH: f64 = 22.6;
/// Times below this limit cannot be measured reliably and are accepted.
const SHORT: Duration = Duration::from_millis(4);
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
fn places(
    typed: &Typed,
    of: &FieldType,
    (way, around): (&mut Vec<Step>, &mut Vec<TypeId>),
    found: &mut Vec<(Vec<Step>, FieldType)>,
) {
    if way.len() > MAX_DEPTH {
        return;
    }
    let types = typed.types();
    match types.resolve(of) {
        FieldType::List(element) => {
            found.push((way.clone(), of.clone()));
            way.push(Step::Element);
            places(typed, element, (way, around), found);
            way.pop();
        }
        FieldType::Map(value) => {
            found.push((way.clone(), of.clone()));
            way.push(Step::Entry);
            places(typed, value, (way, around), found);
            way.pop();
        }
        // A recursive type contains the same lists again.
        FieldType::Ref(id) if !around.contains(id) => {
            around.push(*id);
            for field in &types.get(*id).fields {
                way.push(Step::Field(field.name.to_string()));
                places(typed, &field.ty, (way, around), found);
                way.pop();
            }
            around.pop();
        }
        _ => {}
    }
}

/// Returns the JSON of a value of a type. Strings and numbers contain `at`.
fn value(typed: &Typed, of: &FieldType, at: usize, depth: usize) -> String {
    let types = typed.types();
    match types.resolve(of) {
        FieldType::String | FieldType::IntOrString => format!("\"e{at}\""),
        FieldType::Int32 | FieldType::Int64 | FieldType::Number => at.to_string(),
        FieldType::Quantity => format!("\"{at}\""),
        FieldType::Ref(id) if depth > 0 => {
            let plain =
                |ty: &FieldType| matches!(ty, FieldType::String | FieldType::Int32 | FieldType::Int64);
            let fields = types.get(*id).fields.iter().filter(|field| plain(types.resolve(&field.ty)));
            map(fields.map(|field| (field.name.to_string(), value(typed, &field.ty, at, depth - 1))))
        }
        FieldType::Ref(_) | FieldType::Map(_) => "{}".to_owned(),
        FieldType::List(_) => "[]".to_owned(),
        _ => "null".to_owned(),
    }
}

/// Returns the JSON of a map.
fn map(entries: impl Iterator<Item = (String, String)>) -> String {
    let entries = entries.map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// Returns the JSON of a list or map with `count` elements.
fn long(typed: &Typed, of: &FieldType, count: usize) -> String {
    match typed.types().resolve(of) {
        FieldType::Map(values) => map((0..count).map(|at| (format!("e{at}"), value(typed, values, at, 1)))),
        FieldType::List(elements) => {
            let elements: Vec<String> = (0..count).map(|at| value(typed, elements, at, 1)).collect();
            format!("[{}]", elements.join(","))
        }
        _ => "null".to_owned(),
    }
}

/// Returns an object that contains only `held`, at the path `way`.
fn around(served: &ServedResource, way: &[Step], held: String) -> Object {
    let json = way.iter().rev().fold(held, |held, step| match step {
        Step::Field(name) => format!("{{\"{name}\":{held}}}"),
        Step::Entry => format!("{{\"e\":{held}}}"),
        Step::Element => format!("[{held}]"),
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
            None => validation::validate_create(object, MetaRules::of(&served.info), &mut errors),
            Some(old) => validation::validate_update(object, old, MetaRules::of(&served.info), &mut errors),
        }
        errors.extend(info.schema.validate(object));
        served.strategies.main.validate_with_kind(info, object, old, &mut errors);
    }
}

/// Returns both times if they grow too much.
fn growth(served: &ServedResource, small: &Object, large: &Object) -> Option<(Duration, Duration)> {
    let least = |object: &Object, before: Duration| {
        let began = ThreadTime::now();
        check(served, object);
        before.min(began.elapsed())
    };
    let (mut of_small, mut of_large) = (Duration::MAX, Duration::MAX);
    for _ in 0..ATTEMPTS {
        of_large = least(large, of_large);
        if of_large < SHORT {
            return None;
        }
        of_small = least(small, of_small);
        if of_large.as_secs_f64() <= MAX_GROWTH * of_small.as_secs_f64() {
            return None;
        }
    }
    Some((of_small, of_large))
}

#[test]
fn checking_an_object_grows_with_each_of_its_lists_and_maps() {
    let kinds = Kinds::builtin().unwrap();
    let catalogue = crate::table().resources(&kinds);
    let (mut count, mut wrong) = (0, Vec::new());
    for info in kinds.iter().filter(|info| info.stored && info.is_storage_version()) {
        let Some(served) = catalogue.by_kind(&info.gvk) else { continue };
        let Some(typed) = info.schema.typed() else { continue };
        let mut found = Vec::new();
        for field in &typed.root().fields {
            let mut way = vec![Step::Field(field.name.to_string())];
            places(typed, &field.ty, (&mut way, &mut Vec::new()), &mut found);
        }
        for (way, of) in found {
            count += 1;
            let object = |count| around(served, &way, long(typed, &of, count));
            if let Some((small, large)) = growth(served, &object(ELEMENTS), &object(TIMES * ELEMENTS)) {
                wrong.push(format!("{} {way:?}: {small:?} becomes {large:?}", info.gvk.kind));
            }
        }
    }
    assert!(count > 500, "{count} lists and maps");
    assert!(wrong.is_empty(), "of {count}:\n{}", wrong.join("\n"));
}
