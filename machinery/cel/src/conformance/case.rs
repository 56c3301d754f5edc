//! One case: an expression, its variables, and its result.
//!
//! `types` declares variables, `bindings` contains their values; `result` and `type` are the expected results, or `error`
//! states that the expression fails to compile or to run. null, true, false, strings and lists represent themselves; any other
//! value is an object with one field named after its type (`{"int": "1"}`), as is a type with parameters (`{"list": "int"}`).

use std::sync::Arc;

use serde_json::Value as Json;

use crate::environment::Environment;
use crate::language::Language;
use crate::types::Type;
use crate::value::{Duration, Key, MapBuilder, Timestamp, Value, equal};

/// Case of a table.
pub struct Case {
    line: Json,
}

impl Case {
    /// Reads a line of a table.
    pub fn read(line: &str) -> Self {
        let line: Json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let fields = ["expr", "types", "bindings", "result", "type", "error"];
        assert!(line.as_object().unwrap().keys().all(|key| fields.contains(&key.as_str())), "{line}");
        Self { line }
    }

    fn entries(&self, field: &str) -> impl Iterator<Item = (&str, &Json)> {
        self.line.get(field).and_then(Json::as_object).into_iter().flatten().map(|(k, v)| (k.as_str(), v))
    }

    /// Runs the case. Returns a description of the difference.
    pub fn run(&self) -> Result<(), String> {
        let mut builder = Environment::builder().language(Language::with_all_libraries());
        for (name, ty) in self.entries("types") {
            builder = builder.variable(name, type_of(ty));
        }
        let environment = builder.build();
        let fails = self.line.get("error").is_some();
        let program = match environment.compile(self.line["expr"].as_str().unwrap()) {
            Ok(program) => program,
            // An expression that should fail may fail to compile.
            Err(_) if fails => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        if let Some(ty) = self.line.get("type").map(type_of)
            && *program.result_type() != ty
        {
            return Err(format!("type {} instead of {ty}", program.result_type()));
        }
        let variables: Vec<(&str, Value<'_>)> =
            self.entries("bindings").map(|(name, value)| (name, value_of(value))).collect();
        let (result, _) = program.evaluate(&variables, 1_000_000, &|| false);
        match (result, self.line.get("result").map(value_of)) {
            (Ok(found), Some(expected)) if is_expected(&found, &expected) => Ok(()),
            (Ok(found), Some(expected)) => Err(format!("{found:?} instead of {expected:?}")),
            (Ok(found), None) if fails => Err(format!("{found:?} instead of an error")),
            (Err(error), Some(expected)) => Err(format!("{error} instead of {expected:?}")),
            // Its type has been compared, or it had to fail.
            (Ok(_) | Err(_), None) => Ok(()),
        }
    }
}

fn is_expected(found: &Value<'_>, expected: &Value<'_>) -> bool {
    if let (Value::Double(found), Value::Double(expected)) = (found, expected) {
        return found == expected || found.is_nan() && expected.is_nan();
    }
    std::mem::discriminant(found) == std::mem::discriminant(expected)
        && equal(found, expected).unwrap_or(false)
}

fn value_of(json: &Json) -> Value<'static> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(bool) => Value::Bool(*bool),
        Json::String(text) => Value::text(text.clone()),
        Json::Array(items) => Value::list(items.iter().map(value_of).collect::<Vec<_>>()),
        Json::Object(one) => {
            let (name, value) = one.iter().next().unwrap();
            typed_value(name, value).unwrap_or_else(|| panic!("no value: {json}"))
        }
        Json::Number(_) => panic!("a number without a type: {json}"),
    }
}

fn typed_value(name: &str, value: &Json) -> Option<Value<'static>> {
    let text = value.as_str();
    let seconds_and_nanos = || Some((value.get(0)?.as_i64()?, value.get(1)?.as_i64()?));
    Some(match name {
        "int" => Value::Int(text?.parse().ok()?),
        "uint" => Value::Uint(text?.parse().ok()?),
        "double" => Value::Double(text?.parse().ok()?),
        "bytes" => {
            let bytes =
                value.as_array()?.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()));
            Value::Bytes(bytes.collect::<Option<Vec<u8>>>()?.into())
        }
        "type" => Value::Type(Arc::new(type_of(value))),
        "timestamp" => {
            let (seconds, nanos) = seconds_and_nanos()?;
            Value::Timestamp(Timestamp::at(seconds, u32::try_from(nanos).ok()?).ok()?)
        }
        "duration" => {
            let (seconds, nanos) = seconds_and_nanos()?;
            Value::Duration(Duration { nanos: seconds * 1_000_000_000 + nanos })
        }
        "map" => {
            let mut entries = MapBuilder::new();
            for entry in value.as_array()? {
                entries.insert(Key::from_value(&value_of(&entry[0]))?, value_of(&entry[1]));
            }
            Value::Map(entries.into())
        }
        _ => return None,
    })
}

fn type_of(json: &Json) -> Type {
    let one = json.as_object().and_then(|one| one.iter().next());
    match (json.as_str(), one.map(|(name, inner)| (name.as_str(), inner))) {
        (Some("bool"), _) => Type::Bool,
        (Some("int"), _) => Type::Int,
        (Some("uint"), _) => Type::Uint,
        (Some("double"), _) => Type::Double,
        (Some("string"), _) => Type::String,
        (Some("bytes"), _) => Type::Bytes,
        (Some("timestamp"), _) => Type::Timestamp,
        (Some("duration"), _) => Type::Duration,
        (Some("null"), _) => Type::Null,
        (Some("dyn"), _) => Type::Dyn,
        (Some("type"), _) => Type::Type(None),
        (_, Some(("list", inner))) => Type::list(type_of(inner)),
        (_, Some(("map", inner))) => Type::map(type_of(&inner[0]), type_of(&inner[1])),
        (_, Some(("type", inner))) => Type::type_of(type_of(inner)),
        (_, Some(("optional", inner))) => Type::optional(type_of(inner)),
        _ => panic!("no type: {json}"),
    }
}
