//! Expressions for an object and its schema, compared with the results of kube-apiserver's own evaluator: errors, types,
//! estimated and actual costs, values.
//!
//! `testdata/rules` contains a folder per schema: `schema.json`, `object.json`, `old.json` if the old object differs, and
//! `answers.jsonl` with one expression per line: `e`, `o` if `oldSelf` is optional, and the result. The variable
//! `PORTICO_CEL_ANSWERS` names a directory with more such folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portico_cel::kubernetes::NEW_EXPRESSIONS;
use portico_cel::value::{List, Map as CelMap, from_json};
use portico_cel::{CompileError, DeclType, DeclaredSizes, Environment, Language, Type, Value as Evaluated};
use serde_json::Value;

use super::types;
use crate::structural::Structural;

/// Cost budget of one evaluation.
const BUDGET: u64 = 1_000_000;

/// Formats a value as in the recorded results: almost a literal, with the entries of maps sorted by their text.
fn print_value(value: &Evaluated<'_>) -> String {
    match value {
        Evaluated::Null => "null".to_owned(),
        Evaluated::Bool(value) => value.to_string(),
        Evaluated::Int(value) => value.to_string(),
        Evaluated::Uint(value) => format!("{value}u"),
        Evaluated::Double(value) => print_double_value(*value),
        Evaluated::String(value) => Value::from(&**value).to_string(),
        Evaluated::Bytes(bytes) => {
            bytes.iter().fold("b".to_owned(), |text, byte| format!("{text}{byte:02x}"))
        }
        Evaluated::Timestamp(at) => format!("timestamp({at})"),
        Evaluated::Duration(span) => format!("duration({span})"),
        Evaluated::Type(ty) => format!("type({})", ty.name()),
        Evaluated::Optional(None) => "optional.none".to_owned(),
        Evaluated::Optional(Some(value)) => format!("optional({})", print_value(value)),
        Evaluated::List(list) => print_list(list),
        Evaluated::Map(map) => print_map(map),
        Evaluated::Opaque(value) => format!("<{}>", value.type_of().name()),
    }
}

fn print_double_value(value: f64) -> String {
    let text = portico_cel::value::print_double(value);
    if text.contains(['.', 'e', 'I', 'N']) { text } else { text + ".0" }
}

fn print_list(list: &List<'_>) -> String {
    let items = list
        .iter()
        .map(|item| item.map_or_else(|error| format!("error({error})"), |item| print_value(&item)));
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn print_map(map: &CelMap<'_>) -> String {
    let mut entries: Vec<String> = map
        .keys()
        .filter_map(|key| {
            let value = map
                .get(&key)
                .map_or_else(|error| Some(format!("error({error})")), |v| Some(print_value(&v?)));
            Some(format!("{}: {}", print_value(&key), value?))
        })
        .collect();
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}

/// Schema with objects, read from one folder.
struct Case {
    declared: Arc<DeclType>,
    plain: Environment,
    optional: Environment,
    object: Value,
    old: Value,
}

impl Case {
    fn read(folder: &Path) -> Self {
        let json = |name: &str| {
            fs::read_to_string(folder.join(name)).map(|text| serde_json::from_str(&text).unwrap())
        };
        let schema = Structural::compile(&json("schema.json").unwrap()).unwrap();
        let declared = types::declare(schema.root(), true).unwrap();
        let object: Value = json("object.json").unwrap();
        let language = Language::of_release(NEW_EXPRESSIONS);
        let builder = Environment::builder().language(language).variable("self", declared.ty.clone());
        Self {
            plain: builder.clone().variable("oldSelf", declared.ty.clone()).build(),
            optional: builder.variable("oldSelf", Type::optional(declared.ty.clone())).build(),
            declared,
            old: json("old.json").unwrap_or_else(|_| object.clone()),
            object,
        }
    }

    /// Returns the differences from a recorded result.
    fn differences(&self, answer: &Value) -> Vec<String> {
        let text = answer["e"].as_str().unwrap();
        let mut differences = Vec::new();
        let mut compare = |field: &str, got: Value| {
            if got != answer[field] {
                differences.push(format!("{text}\n    {field}: {got}\n    want: {answer}"));
            }
        };
        let optional = answer["o"] == true;
        let environment = if optional { &self.optional } else { &self.plain };
        let program = match environment.compile(text) {
            Ok(program) => program,
            Err(CompileError::Compilation(reason)) => {
                compare("compile", reason.to_string().into());
                return differences;
            }
            Err(CompileError::Instantiation(reason)) => {
                compare("program", reason.into());
                return differences;
            }
            Err(error) => panic!("{error}"),
        };
        compare("type", program.result_type().to_string().into());
        let estimate = program.estimate(&DeclaredSizes(&self.declared));
        compare("est", vec![estimate.min, estimate.max].into());
        let this = from_json(&self.object, &self.declared).unwrap();
        let old = from_json(&self.old, &self.declared).unwrap();
        let old = if optional { Evaluated::some(old) } else { old };
        let (result, cost) = program.evaluate(&[("self", this), ("oldSelf", old)], BUDGET, &|| false);
        match &result {
            Ok(value) => compare("val", print_value(value).into()),
            Err(error) => compare("err", error.to_string().into()),
        }
        compare("cost", cost.into());
        differences
    }
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.join("answers.jsonl").exists()).collect()
}

#[test]
fn expressions_have_upstream_results() {
    let mut all = folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/rules"));
    if let Some(more) = std::env::var_os("PORTICO_CEL_ANSWERS") {
        all.extend(folders(Path::new(&more)));
    }
    let mut found = Vec::new();
    for folder in all {
        let case = Case::read(&folder);
        let answers = fs::read_to_string(folder.join("answers.jsonl")).unwrap();
        found.extend(answers.lines().flat_map(|line| case.differences(&serde_json::from_str(line).unwrap())));
    }
    assert!(found.is_empty(), "{}\n{} differences", found.join("\n"), found.len());
}
