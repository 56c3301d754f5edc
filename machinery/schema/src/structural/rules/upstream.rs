//! Expressions over an object and its schema, with what kube-apiserver's own evaluator answered: refusals, types, costs
//! judged before and counted while running, values and errors.

use std::sync::Arc;

use portico_cel::environment::NEW_EXPRESSIONS;
use portico_cel::value::{List, Map as CelMap, from_json, print_key};
use portico_cel::{CompileError, DeclType, DeclaredSizes, Environment, Language, Type, Value as Evaluated};
use serde_json::Value;

use super::types;
use crate::structural::Structural;

const SCHEMA: &str = include_str!("../../../testdata/rules/schema.json");
const OBJECT: &str = include_str!("../../../testdata/rules/object.json");
const ANSWERS: &str = include_str!("../../../testdata/rules/answers.jsonl");

/// A value as the answers spell it: containers as JSON, the rest as `string()` does.
fn shown(value: &Evaluated<'_>) -> Value {
    match value {
        Evaluated::Bool(value) => Value::Bool(*value),
        Evaluated::Int(value) => Value::from(*value),
        Evaluated::Uint(value) => Value::from(*value),
        Evaluated::Double(value) => Value::from(*value),
        Evaluated::String(value) => Value::from(&**value),
        Evaluated::List(list) => list_shown(list),
        Evaluated::Map(map) => map_shown(map),
        _ => Value::Null,
    }
}

fn list_shown(list: &List<'_>) -> Value {
    list.iter().map(|item| item.map_or(Value::Null, |item| shown(&item))).collect()
}

fn map_shown(map: &CelMap<'_>) -> Value {
    let entries = map.entries().unwrap_or_default();
    Value::Object(entries.iter().map(|(key, value)| (print_key(key), shown(value))).collect())
}

/// Whether a value is what was answered; values without a spelling in JSON are not compared.
fn is_answered(value: &Evaluated<'_>, answer: &str) -> bool {
    match value {
        Evaluated::String(text) => **text == *answer,
        Evaluated::Bool(_) | Evaluated::Int(_) | Evaluated::Uint(_) => print_key(value) == answer,
        Evaluated::Double(number) => portico_cel::library::print_double(*number) == answer,
        Evaluated::Timestamp(at) => at.to_string() == answer,
        Evaluated::Duration(span) => span.to_string() == answer,
        Evaluated::Type(ty) => ty.name() == answer,
        // Maps have no spelling in the answers.
        Evaluated::Map(_) if answer.is_empty() => true,
        Evaluated::List(_) | Evaluated::Map(_) => {
            serde_json::from_str::<Value>(answer).is_ok_and(|answer| answer == shown(value))
        }
        _ => true,
    }
}

fn differences(
    environment: &Environment,
    declared: &DeclType,
    object: &Value,
    answer: &Value,
) -> Vec<String> {
    let text = answer["e"].as_str().unwrap();
    let mut differences = Vec::new();
    let mut differ = |what: &str, found: &str| {
        differences.push(format!("{text}\n    {what}: {found}\n    answer: {}", answer[what]));
    };
    let program = match environment.compile(text) {
        Ok(program) => program,
        Err(CompileError::Compilation(why)) => {
            // Syntax errors are told in fewer words.
            let told = answer["compile"].as_str().unwrap_or_default();
            if told.is_empty() || (told != why && !told.contains("Syntax error")) {
                differ("compile", &why);
            }
            return differences;
        }
        Err(CompileError::Instantiation(why)) => {
            if answer["program"].as_str() != Some(&*why) {
                differ("program", &why);
            }
            return differences;
        }
    };
    let ty = program.result_type().to_string();
    let same = |answer: &str| answer == ty || answer.replace("google.protobuf.", "").to_lowercase() == ty;
    if !answer["type"].as_str().is_some_and(same) && !matches!(program.result_type(), Type::Null) {
        differ("type", &ty);
    }
    let estimate = program.estimate(&DeclaredSizes(declared));
    if answer["est"] != Value::from(vec![estimate.min, estimate.max]) {
        differ("est", &format!("{}, {}", estimate.min, estimate.max));
    }
    let this = || from_json(object, declared).unwrap();
    let (result, cost) = program.evaluate(&[("self", this()), ("oldSelf", this())], 1_000_000, &|| false);
    match (&result, answer["val"].as_str(), answer["err"].as_str()) {
        (Ok(value), Some(answered), _) if is_answered(value, answered) => {
            if answer["cost"] != cost {
                differ("cost", &cost.to_string());
            }
        }
        (Err(error), _, Some(answered)) if error.to_string() == answered => {}
        (Ok(value), ..) => differ("val", &format!("{value:?}")),
        (Err(error), ..) => differ("err", &error.to_string()),
    }
    differences
}

#[test]
fn expressions_over_objects_are_answered_as_upstream_answers_them() {
    let schema = Structural::compile(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let declared: Arc<DeclType> = types::declare(schema.root(), true).unwrap();
    let environment = Environment::new(Language::of_release(NEW_EXPRESSIONS))
        .with("self", declared.ty.clone())
        .with("oldSelf", declared.ty.clone());
    let object: Value = serde_json::from_str(OBJECT).unwrap();
    let answers = ANSWERS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found: Vec<String> =
        answers.flat_map(|answer| differences(&environment, &declared, &object, &answer)).collect();
    assert!(found.is_empty(), "{}\n{} differences", found.join("\n"), found.len());
}
