//! Functions for the macros `transformMap` and `transformMapEntry`, which add one entry to a map.

use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::Type;
use crate::value::{Key, Map, MapBuilder, Value};

pub(super) fn library() -> Library {
    let (key, value) = (|| Type::param("K"), || Type::param("V"));
    let map = || Type::map(key(), value());
    Library {
        name: "cel.lib.ext.comprev2",
        functions: vec![Function::new(
            "cel.@mapInsert",
            vec![
                Overload::global("@mapInsert_map_key_value", vec![map(), key(), value()], map(), insert),
                Overload::global("@mapInsert_map_map", vec![map(), map()], map(), insert_all),
            ],
        )],
        ..Library::default()
    }
}

fn insert<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let mut entries = copy_map(call, call.map(0)?)?;
    add(&mut entries, call.argument(1)?, call.argument(2)?.clone())?;
    Ok(Value::Map(Map::from(entries)))
}

fn insert_all<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let mut entries = copy_map(call, call.map(0)?)?;
    let more = call.map(1)?;
    call.take_items(more.len())?;
    for entry in more.iter() {
        let (key, value) = entry?;
        add(&mut entries, &key, value)?;
    }
    Ok(Value::Map(Map::from(entries)))
}

fn copy_map<'v>(call: &Call<'_, 'v>, map: &Map<'v>) -> Result<MapBuilder<'v>, EvalError> {
    call.take_items(map.len())?;
    if let Some(entries) = map.computed() {
        return Ok(entries.clone());
    }
    let entries = map.entries()?.into_iter();
    Ok(entries.filter_map(|(key, value)| Some((Key::from_value(&key)?, value))).collect())
}

fn add<'v>(entries: &mut MapBuilder<'v>, key: &Value<'v>, value: Value<'v>) -> Result<(), EvalError> {
    let Some(entry) = Key::from_value(key) else {
        return Err(EvalError::new(format!("unsupported key type: {}", key.type_of().name())));
    };
    if entries.contains_key(&entry) {
        return Err(EvalError::new(format!("insert failed: key {} already exists", key_text(key))));
    }
    entries.insert(entry, value);
    Ok(())
}

fn key_text(key: &Value<'_>) -> String {
    match key {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::String(value) => value.to_string(),
        _ => String::new(),
    }
}
