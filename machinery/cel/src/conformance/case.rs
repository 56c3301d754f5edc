//! One conformance case: what it declares, binds and expects.

use std::sync::Arc;

use crate::value::{Duration, Key, MapBuilder, Timestamp, equal};
use crate::{Environment, Language, Type, Value};

use super::textproto::{Field, Message};

/// How a case ended.
pub enum Outcome {
    Passed,
    /// It needs what this engine does not have: messages, containers, unchecked expressions.
    Skipped,
    Failed(String),
}

/// A case.
pub struct Case<'m> {
    /// File, section and name.
    pub name: String,
    /// The expression.
    pub expr: String,
    test: &'m Message,
}

/// What stands for a part that this engine does not have.
struct Unsupported;

impl<'m> Case<'m> {
    /// All cases of a file.
    pub fn all(file: &str, document: &'m Message) -> Vec<Self> {
        let mut cases = Vec::new();
        for section in document.all("section") {
            let Field::Message(section) = section else { continue };
            for test in section.all("test") {
                let Field::Message(test) = test else { continue };
                let name = format!(
                    "{file}/{}/{}",
                    section.text("name").unwrap_or_default(),
                    test.text("name").unwrap_or_default()
                );
                cases.push(Self { name, expr: test.text("expr").unwrap_or_default(), test });
            }
        }
        cases
    }

    /// Plays it.
    pub fn play(&self) -> Outcome {
        self.try_play().unwrap_or(Outcome::Skipped)
    }

    fn try_play(&self) -> Result<Outcome, Unsupported> {
        let flagged = |name: &str| self.test.text(name).is_some_and(|value| value == "true");
        if flagged("disable_check") || flagged("disable_macros") || self.test.text("container").is_some() {
            return Err(Unsupported);
        }
        if self.expr.contains("TestAllTypes")
            || self.expr.contains("google.protobuf.") && self.expr.contains('{')
        {
            return Err(Unsupported);
        }
        let mut environment = Environment::new(Language::everything());
        for declared in self.test.all("type_env") {
            let Field::Message(declared) = declared else { continue };
            let ident = declared.message("ident").ok_or(Unsupported)?;
            let name = declared.text("name").unwrap_or_default();
            environment = environment.with(&name, type_of(ident.message("type").ok_or(Unsupported)?)?);
        }
        let mut bindings = Vec::new();
        for binding in self.test.all("bindings") {
            let Field::Message(binding) = binding else { continue };
            let value =
                binding.message("value").and_then(|value| value.message("value")).ok_or(Unsupported)?;
            bindings.push((binding.text("key").unwrap_or_default(), value_of(value)?));
        }
        let expected = self.expected()?;
        Ok(self.compare(&environment, &bindings, expected))
    }

    fn expected(&self) -> Result<Expected, Unsupported> {
        if let Some(value) = self.test.message("value") {
            return Ok(Expected::Value(value_of(value)?, None));
        }
        if let Some(typed) = self.test.message("typed_result") {
            let ty = typed.message("deduced_type").map(type_of).transpose()?;
            let value = typed.message("result").map(value_of).transpose()?;
            return Ok(match value {
                Some(value) => Expected::Value(value, ty),
                None => Expected::Type(ty.ok_or(Unsupported)?),
            });
        }
        if self.test.get("eval_error").is_some() || self.test.get("any_eval_errors").is_some() {
            return Ok(Expected::Error);
        }
        if self.test.get("unknown").is_some() || self.test.get("any_unknowns").is_some() {
            return Err(Unsupported);
        }
        Ok(Expected::Value(Value::Bool(true), None))
    }

    fn compare(
        &self,
        environment: &Environment,
        bindings: &[(String, Value<'static>)],
        expected: Expected,
    ) -> Outcome {
        let program = match (environment.compile(&self.expr), &expected) {
            (Ok(program), _) => program,
            // What is in error anyway may be refused before it runs.
            (Err(_), Expected::Error) => return Outcome::Passed,
            (Err(error), _) => return Outcome::Failed(error.to_string()),
        };
        if let Expected::Value(_, Some(ty)) | Expected::Type(ty) = &expected
            && program.result_type() != ty
        {
            return Outcome::Failed(format!("type {} instead of {ty}", program.result_type()));
        }
        let variables: Vec<(&str, Value<'_>)> =
            bindings.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let (result, _) = program.evaluate(&variables, 1_000_000, &|| false);
        match (result, expected) {
            (_, Expected::Type(_)) | (Err(_), Expected::Error) => Outcome::Passed,
            (Ok(found), Expected::Value(wanted, _)) if same(&found, &wanted) => Outcome::Passed,
            (Ok(found), Expected::Value(wanted, _)) => {
                Outcome::Failed(format!("{found:?} instead of {wanted:?}"))
            }
            (Ok(found), Expected::Error) => Outcome::Failed(format!("{found:?} instead of an error")),
            (Err(error), Expected::Value(wanted, _)) => {
                Outcome::Failed(format!("{error} instead of {wanted:?}"))
            }
        }
    }
}

enum Expected {
    Value(Value<'static>, Option<Type>),
    Type(Type),
    Error,
}

fn same(found: &Value<'_>, wanted: &Value<'_>) -> bool {
    if let (Value::Double(found), Value::Double(wanted)) = (found, wanted) {
        return found == wanted || found.is_nan() && wanted.is_nan();
    }
    std::mem::discriminant(found) == std::mem::discriminant(wanted) && equal(found, wanted).unwrap_or(false)
}

fn value_of(message: &Message) -> Result<Value<'static>, Unsupported> {
    let (kind, field) = message.0.first().ok_or(Unsupported)?;
    match field {
        Field::Word(word) => match kind.as_str() {
            "null_value" => Ok(Value::Null),
            "bool_value" => Ok(Value::Bool(word == "true")),
            "int64_value" => integer(word).map(Value::Int),
            "uint64_value" => word.parse().map(Value::Uint).map_err(|_| Unsupported),
            "double_value" => double(word).map(Value::Double),
            _ => Err(Unsupported),
        },
        Field::Text(text) => match kind.as_str() {
            "string_value" => Ok(Value::text(String::from_utf8(text.clone()).map_err(|_| Unsupported)?)),
            "bytes_value" => Ok(Value::Bytes(text.clone().into())),
            "type_value" => named(&String::from_utf8_lossy(text)).map(|ty| Value::Type(Arc::new(ty))),
            _ => Err(Unsupported),
        },
        Field::Message(inner) => match kind.as_str() {
            "list_value" => {
                let values = inner.all("values").map(|value| match value {
                    Field::Message(value) => value_of(value),
                    _ => Err(Unsupported),
                });
                values.collect::<Result<Vec<_>, _>>().map(Value::list)
            }
            "map_value" => map(inner),
            "object_value" => object(inner),
            _ => Err(Unsupported),
        },
    }
}

fn map(message: &Message) -> Result<Value<'static>, Unsupported> {
    let mut entries = MapBuilder::new();
    for entry in message.all("entries") {
        let Field::Message(entry) = entry else { return Err(Unsupported) };
        let key = value_of(entry.message("key").ok_or(Unsupported)?)?;
        let value = value_of(entry.message("value").ok_or(Unsupported)?)?;
        entries.insert(Key::from_value(&key).ok_or(Unsupported)?, value);
    }
    Ok(Value::Map(entries.into()))
}

fn object(message: &Message) -> Result<Value<'static>, Unsupported> {
    let (name, Field::Message(inner)) = message.0.first().ok_or(Unsupported)? else {
        return Err(Unsupported);
    };
    let number = |field: &str| inner.text(field).map_or(Ok(0), |text| integer(&text));
    let (seconds, nanos) = (number("seconds")?, number("nanos")?);
    match name.as_str() {
        "[type.googleapis.com/google.protobuf.Timestamp]" => {
            let nanos = u32::try_from(nanos).map_err(|_| Unsupported)?;
            Timestamp::at(seconds, nanos).map(Value::Timestamp).map_err(|_| Unsupported)
        }
        "[type.googleapis.com/google.protobuf.Duration]" => {
            Ok(Value::Duration(Duration { nanos: seconds * 1_000_000_000 + nanos }))
        }
        _ => Err(Unsupported),
    }
}

fn integer(word: &str) -> Result<i64, Unsupported> {
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).map_err(|_| Unsupported),
        None => word.parse().map_err(|_| Unsupported),
    }
}

fn double(word: &str) -> Result<f64, Unsupported> {
    match word {
        "inf" | "infinity" | "Infinity" => Ok(f64::INFINITY),
        "-inf" | "-infinity" | "-Infinity" => Ok(f64::NEG_INFINITY),
        "nan" => Ok(f64::NAN),
        other => other.parse().map_err(|_| Unsupported),
    }
}

fn named(name: &str) -> Result<Type, Unsupported> {
    Ok(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Type(None),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "optional_type" => Type::optional(Type::Dyn),
        _ => return Err(Unsupported),
    })
}

fn type_of(message: &Message) -> Result<Type, Unsupported> {
    let (kind, field) = message.0.first().ok_or(Unsupported)?;
    match field {
        Field::Word(word) => match (kind.as_str(), word.as_str()) {
            ("primitive", "BOOL") => Ok(Type::Bool),
            ("primitive", "INT64") => Ok(Type::Int),
            ("primitive", "UINT64") => Ok(Type::Uint),
            ("primitive", "DOUBLE") => Ok(Type::Double),
            ("primitive", "STRING") => Ok(Type::String),
            ("primitive", "BYTES") => Ok(Type::Bytes),
            ("well_known", "TIMESTAMP") => Ok(Type::Timestamp),
            ("well_known", "DURATION") => Ok(Type::Duration),
            ("null", _) => Ok(Type::Null),
            _ => Err(Unsupported),
        },
        Field::Text(_) => Err(Unsupported),
        Field::Message(inner) => {
            let part = |name: &str| inner.message(name).ok_or(Unsupported).and_then(type_of);
            match kind.as_str() {
                "dyn" => Ok(Type::Dyn),
                "list_type" => Ok(Type::list(part("elem_type")?)),
                "map_type" => Ok(Type::map(part("key_type")?, part("value_type")?)),
                "type" if inner.0.is_empty() => Ok(Type::Type(None)),
                "type" => type_of(inner).map(Type::type_of),
                "abstract_type" if inner.text("name").is_some_and(|name| name == "optional_type") => {
                    part("parameter_types").map(Type::optional)
                }
                _ => Err(Unsupported),
            }
        }
    }
}
