//! JSON patch, RFC 6902, with upstream's deviations: `replace` of a missing map key adds it, `test` and `copy` treat it as
//! null, negative indices count from the end, text before the first slash of a path is ignored, and only `replace` and `test`
//! can address the whole document. The work of every operation is limited, so that a small patch cannot occupy a core.

use std::collections::HashMap;

use portico_machinery::object::MAX_DEPTH;
use serde_json::{Map, Value};

use super::document::{parse_patch, patch_type_error};
use super::error::PatchError;
use super::limits::{MAX_COPIED_BYTES, MAX_OPERATIONS};
use crate::decode::{MAX_STRICT, json_type_name};

/// Elements that the operations of a JSON patch shift or inspect.
///
/// Limit (Requests): 422.
const MAX_SHIFTED: usize = 10_000_000;

/// Members of an operation.
const OPERATION_MEMBERS: [&str; 4] = ["op", "path", "from", "value"];

type Result<T> = std::result::Result<T, PatchError>;

/// Applies a patch to a document.
pub(super) fn apply(document: &mut Value, patch: &[u8]) -> Result<()> {
    let operations = match parse_patch(patch)? {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => return Err(patch_type_error(&other, "[]handlers.jsonPatchOp")),
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations(operations.len()));
    }
    let operations: Result<Vec<Operation>> = operations.into_iter().map(parse_operation).collect();
    let mut work = WorkCounter { copied: 0, shifted: 0 };
    for (index, operation) in operations?.into_iter().enumerate() {
        let op = operation.op.clone();
        run_operation(document, operation, &mut work).map_err(|error| error.into_patch_error(index, &op))?;
    }
    Ok(())
}

struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

fn parse_operation(value: Value) -> Result<Operation> {
    let mut map = match value {
        Value::Object(map) => map,
        // An operation without members, which fails when it is executed.
        Value::Null => Map::new(),
        other => return Err(patch_type_error(&other, "handlers.jsonPatchOp")),
    };
    let (op, path, from) =
        (string_member(&map, "op")?, string_member(&map, "path")?, string_member(&map, "from")?);
    Ok(Operation { op: op.unwrap_or_default(), path, from, value: map.remove("value").unwrap_or_default() })
}

fn string_member(operation: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match operation.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            let found = json_type_name(other);
            Err(PatchError::Malformed(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
            )))
        }
    }
}

/// Returns the strict errors of operations, in order: first the duplicate members of an operation, then the unknown ones.
pub(super) fn diagnostics(operations: &Value, duplicates: &[String]) -> Vec<String> {
    let Value::Array(operations) = operations else { return Vec::new() };
    let mut by_operation: HashMap<usize, Vec<&String>> = HashMap::new();
    for text in duplicates {
        if let Some(index) = operation_index(text) {
            by_operation.entry(index).or_default().push(text);
        }
    }
    let mut diagnostics = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let duplicates = by_operation.get(&index).into_iter().flatten();
        diagnostics.extend(duplicates.map(|text| format!("json patch {text}")));
        let members = operation.as_object().into_iter().flat_map(Map::keys);
        let unknown = members.filter(|name| !OPERATION_MEMBERS.contains(&name.as_str()));
        diagnostics.extend(
            unknown.map(|name| format!("json patch unknown field {:?}", format!("[{index}].{name}"))),
        );
        if diagnostics.len() >= MAX_STRICT {
            break;
        }
    }
    diagnostics.truncate(MAX_STRICT);
    diagnostics
}

/// Returns the index in `duplicate field "[7].path"`.
fn operation_index(text: &str) -> Option<usize> {
    text.split_once("\"[")?.1.split_once(']')?.0.parse().ok()
}

/// Cost of the operations so far.
struct WorkCounter {
    copied: usize,
    shifted: usize,
}

/// Reason why an operation fails.
#[derive(Debug, thiserror::Error)]
enum OperationError {
    #[error("unknown operation {}", portico_gostd::strconv::quote(.0))]
    Unknown(String),
    #[error("{0} is required")]
    Required(&'static str),
    #[error("{} does not exist", portico_gostd::strconv::quote(.0))]
    Missing(String),
    #[error("{} is not an index of a list of length {}", portico_gostd::strconv::quote(.0), .1)]
    Index(String, usize),
    #[error("testing path {0} failed: test failed")]
    Test(String),
    #[error("more than {MAX_COPIED_BYTES} bytes copied")]
    Copied,
    #[error("more than {MAX_SHIFTED} list elements shifted or inspected")]
    Shifted,
    #[error("nests deeper than {MAX_DEPTH} levels")]
    Depth,
}

impl OperationError {
    /// Returns the error for the operation at this index, with upstream's message if upstream reports the reason.
    fn into_patch_error(self, index: usize, op: &str) -> PatchError {
        match self {
            Self::Test(_) => PatchError::TestFailed(self.to_string()),
            Self::Missing(path) => PatchError::Failed(format!(
                "{op} operation does not apply: doc is missing path: {path}: missing value"
            )),
            other => PatchError::Failed(format!("operation {index}: {other}")),
        }
    }
}

fn run_operation(
    document: &mut Value,
    operation: Operation,
    work: &mut WorkCounter,
) -> std::result::Result<(), OperationError> {
    let Operation { op, path, from, value } = operation;
    let path = path.ok_or(OperationError::Required("`path`"))?;
    let from = || from.as_deref().ok_or(OperationError::Required("`from`"));
    match op.as_str() {
        "add" => add(document, &path, value, work),
        "remove" => remove(document, &path, work).map(drop),
        "replace" => replace(document, &path, value, work),
        "move" => {
            let value = remove(document, from()?, work)?;
            add(document, &path, value, work)
        }
        "copy" => {
            let value = get(document, from()?)?.clone();
            work.copy(&value)?;
            add(document, &path, value, work)
        }
        "test" => test(document, path, &value),
        _ => Err(OperationError::Unknown(op)),
    }
}

impl WorkCounter {
    fn copy(&mut self, value: &Value) -> std::result::Result<(), OperationError> {
        self.copied += value.to_string().len();
        if self.copied > MAX_COPIED_BYTES { Err(OperationError::Copied) } else { Ok(()) }
    }

    fn shift(&mut self, elements: usize) -> std::result::Result<(), OperationError> {
        self.shifted += elements;
        if self.shifted > MAX_SHIFTED { Err(OperationError::Shifted) } else { Ok(()) }
    }
}

/// Returns the container in which a path ends, and the last part of the path.
fn parent<'d>(
    document: &'d mut Value,
    path: &str,
) -> std::result::Result<(&'d mut Value, String), OperationError> {
    let missing = || OperationError::Missing(path.to_owned());
    let (_, parts) = path.split_once('/').ok_or_else(missing)?;
    let (parents, last) = match parts.rsplit_once('/') {
        Some((parents, last)) => (Some(parents), last),
        None => (None, parts),
    };
    let mut current = document;
    for part in parents.into_iter().flat_map(|p| p.split('/')) {
        current = match current {
            Value::Object(map) => map.get_mut(&unescape(part)).ok_or_else(missing)?,
            Value::Array(list) => {
                let index = list_index(part, list.len(), list.len()).map_err(|_| missing())?;
                &mut list[index]
            }
            _ => return Err(missing()),
        };
    }
    Ok((current, unescape(last)))
}

pub(super) fn unescape(part: &str) -> String {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~") } else { part.to_owned() }
}

/// Parses an index into a list of `length` elements. It must be below `end`; negative indices count from `end`.
fn list_index(part: &str, length: usize, end: usize) -> std::result::Result<usize, OperationError> {
    let wrong = || OperationError::Index(part.to_owned(), length);
    let index = part.parse::<isize>().map_err(|_| wrong())?;
    let index = if index < 0 { end.checked_sub(index.unsigned_abs()) } else { Some(index.unsigned_abs()) };
    index.filter(|index| *index < end).ok_or_else(wrong)
}

fn get<'d>(document: &'d mut Value, path: &str) -> std::result::Result<&'d Value, OperationError> {
    let missing = || OperationError::Missing(path.to_owned());
    let (container, last) = parent(document, path)?;
    match container {
        Value::Object(map) => Ok(map.get(&last).unwrap_or(&Value::Null)),
        Value::Array(list) => Ok(&list[list_index(&last, list.len(), list.len())?]),
        _ => Err(missing()),
    }
}

/// Tests a value. A missing map key equals null, as upstream: clients use this to test that a field does not exist yet.
fn test(document: &mut Value, path: String, value: &Value) -> std::result::Result<(), OperationError> {
    let holds = if path.is_empty() {
        document == value
    } else {
        get(document, &path).is_ok_and(|found| found == value)
    };
    if holds { Ok(()) } else { Err(OperationError::Test(path)) }
}

/// Checks that a value, inserted at a path, does not nest deeper than a body may. Otherwise copies and moves could build half
/// a million levels, and recursive code would overflow its stack.
fn check_depth(path: &str, value: &Value, work: &mut WorkCounter) -> std::result::Result<(), OperationError> {
    let remaining_depth = MAX_DEPTH.checked_sub(path.matches('/').count()).ok_or(OperationError::Depth)?;
    check_depth_below(value, remaining_depth, work)
}

fn check_depth_below(
    value: &Value,
    remaining_depth: usize,
    work: &mut WorkCounter,
) -> std::result::Result<(), OperationError> {
    let count = match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => return Ok(()),
    };
    let left = remaining_depth.checked_sub(1).ok_or(OperationError::Depth)?;
    work.shift(count)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_depth_below(item, left, work)),
        Value::Object(fields) => fields.values().try_for_each(|value| check_depth_below(value, left, work)),
        _ => Ok(()),
    }
}

fn add(
    document: &mut Value,
    path: &str,
    value: Value,
    work: &mut WorkCounter,
) -> std::result::Result<(), OperationError> {
    check_depth(path, &value, work)?;
    let (container, last) = parent(document, path)?;
    match container {
        Value::Object(map) => drop(map.insert(last, value)),
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            let index = list_index(&last, list.len(), list.len() + 1)?;
            work.shift(list.len() - index)?;
            list.insert(index, value);
        }
        _ => return Err(OperationError::Missing(path.to_owned())),
    }
    Ok(())
}

fn replace(
    document: &mut Value,
    path: &str,
    value: Value,
    work: &mut WorkCounter,
) -> std::result::Result<(), OperationError> {
    check_depth(path, &value, work)?;
    if path.is_empty() {
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return Err(OperationError::Required("an object or list as replacement of the document"));
        }
        *document = value;
        return Ok(());
    }
    let (container, last) = parent(document, path)?;
    match container {
        Value::Object(map) => drop(map.insert(last, value)),
        Value::Array(list) => {
            let index = list_index(&last, list.len(), list.len())?;
            list[index] = value;
        }
        _ => return Err(OperationError::Missing(path.to_owned())),
    }
    Ok(())
}

fn remove(
    document: &mut Value,
    path: &str,
    work: &mut WorkCounter,
) -> std::result::Result<Value, OperationError> {
    let missing = || OperationError::Missing(path.to_owned());
    let (container, last) = parent(document, path)?;
    match container {
        Value::Object(map) => {
            work.shift(map.len())?;
            map.shift_remove(&last).ok_or_else(missing)
        }
        Value::Array(list) => {
            let index = list_index(&last, list.len(), list.len())?;
            work.shift(list.len() - index)?;
            Ok(list.remove(index))
        }
        _ => Err(missing()),
    }
}
