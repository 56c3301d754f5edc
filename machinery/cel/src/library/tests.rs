//! Expressions with what upstream's own evaluator answered: values, errors, refusals, costs and estimates.
//!
//! `testdata/library.jsonl` holds one expression a line. `s` is a text of at most ten characters, `ints` and `strs` are
//! lists of at most five items, `d` is anything.

use serde_json::Value as Json;

use crate::compile::CompileError;
use crate::cost::{AstNode, SizeEstimator};
use crate::environment::Environment;
use crate::kubernetes::NEW_EXPRESSIONS;
use crate::language::Language;
use crate::library::strings::shown;
use crate::size::SizeEstimate;
use crate::types::Type;
use crate::value::{Key, Map, MapBuilder, Value};

const ANSWERS: &str = include_str!("../../testdata/library.jsonl");
/// Budget of an evaluation.
const BUDGET: u64 = 1_000_000;

struct Sizes;

impl SizeEstimator for Sizes {
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

fn printed(value: &Value<'_>) -> String {
    match value {
        Value::Optional(None) => "optional.none".to_owned(),
        Value::Optional(Some(held)) => format!("optional({})", printed(held)),
        other => shown(other),
    }
}

/// Returns the differences from the recorded answer.
fn differences(environment: &Environment, answer: &Json) -> Vec<String> {
    let text = answer["e"].as_str().unwrap();
    let mut differences = Vec::new();
    let mut compare = |what: &str, got: Json| {
        if got != answer[what] {
            differences.push(format!("{text}\n    {what}: {got}\n    want: {}", answer[what]));
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
    let estimate = program.estimate(&Sizes);
    compare("est", vec![estimate.min, estimate.max].into());
    let (result, cost) = program.evaluate(&variables(), BUDGET, &|| false);
    match result {
        Ok(value) => {
            compare("val", printed(&value).into());
            compare("cost", cost.into());
        }
        // Upstream counts calls that it does not make because an argument failed; a failure costs what it may.
        Err(error) => compare("err", error.to_string().into()),
    }
    differences
}

#[test]
fn expressions_are_answered_as_upstream_answers_them() {
    let environment = environment();
    let answers = ANSWERS.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let differences: Vec<String> = answers.flat_map(|answer| differences(&environment, &answer)).collect();
    assert!(differences.is_empty(), "{}\n{} differences", differences.join("\n"), differences.len());
}
