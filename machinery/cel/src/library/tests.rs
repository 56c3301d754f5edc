//! Expressions with the results of upstream's evaluator: values, errors, compile errors, costs and estimates.
//!
//! `testdata/library.jsonl` contains one expression per line. `s` is a string of at most ten characters, `ints` and `strs` are
//! lists of at most five items, `d` has any type.

use serde_json::Value as Json;

use crate::compile::CompileError;
use crate::cost::{AstNode, SizeEstimator};
use crate::environment::Environment;
use crate::kubernetes::NEW_EXPRESSIONS;
use crate::language::Language;
use crate::library::strings::value_text;
use crate::size::SizeEstimate;
use crate::types::Type;
use crate::value::{Key, Map, MapBuilder, Value};

const RECORDED_RESPONSES: &str = include_str!("../../testdata/library.jsonl");
/// Budget of an evaluation.
const BUDGET: u64 = 1_000_000;

struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn size(&self, of: AstNode<'_>) -> Option<SizeEstimate> {
        let path: Vec<&str> = of.path.iter().map(|part| &**part).collect();
        match path[..] {
            ["s"] | ["strs", "@items"] => Some(SizeEstimate::new(0, 10)),
            ["strs" | "ints"] => Some(SizeEstimate::new(0, 5)),
            _ => None,
        }
    }
}

fn environment() -> Environment {
    Environment::builder()
        .language(Language::of_release(NEW_EXPRESSIONS))
        .variable("d", Type::Dyn)
        .variable("ints", Type::list(Type::Int))
        .variable("strs", Type::list(Type::String))
        .variable("s", Type::String)
        .build()
}

fn variables() -> [(&'static str, Value<'static>); 4] {
    let mut entries = MapBuilder::new();
    entries.insert(Key::String("a".to_owned().into()), Value::Int(1));
    [
        ("d", Value::Map(Map::from(entries))),
        ("ints", Value::list([3, 1, 2].map(Value::Int).to_vec())),
        ("strs", Value::list(["b", "a"].map(Value::text).to_vec())),
        ("s", Value::text("text")),
    ]
}

fn print(value: &Value<'_>) -> String {
    match value {
        Value::Optional(None) => "optional.none".to_owned(),
        Value::Optional(Some(inner)) => format!("optional({})", print(inner)),
        other => value_text(other),
    }
}

/// Returns the differences from the recorded answer.
fn differences(environment: &Environment, answer: &Json) -> Vec<String> {
    let text = answer["e"].as_str().unwrap();
    let mut differences = Vec::new();
    let mut compare = |field: &str, got: Json| {
        if got != answer[field] {
            differences.push(format!("{text}\n    {field}: {got}\n    want: {}", answer[field]));
        }
    };
    let program = match environment.compile(text) {
        Ok(program) => program,
        Err(CompileError::Compilation(message)) => {
            compare("compile", message.to_string().into());
            return differences;
        }
        Err(CompileError::Instantiation(message)) => {
            compare("program", message.into());
            return differences;
        }
    };
    let estimate = program.estimate(&UnknownSizes);
    compare("est", vec![estimate.min, estimate.max].into());
    let (result, cost) = program.evaluate(&variables(), BUDGET, &|| false);
    match result {
        Ok(value) => {
            compare("val", print(&value).into());
            compare("cost", cost.into());
        }
        // The cost of a failure is not compared: upstream also counts calls that are skipped because an argument failed.
        Err(error) => compare("err", error.to_string().into()),
    }
    differences
}

#[test]
fn expressions_have_upstream_results() {
    let environment = environment();
    let answers = RECORDED_RESPONSES.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let differences: Vec<String> = answers.flat_map(|answer| differences(&environment, &answer)).collect();
    assert!(differences.is_empty(), "{}\n{} differences", differences.join("\n"), differences.len());
}
