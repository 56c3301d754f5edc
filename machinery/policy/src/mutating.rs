//! Compiled MutatingAdmissionPolicies and their mutations of objects (upstream's `mutating` and `patch`).

use std::ops::ControlFlow::{self, Break, Continue};

use portico_cel::value::{JsonWriter, List, Map, to_json};
use portico_cel::{EvalError, Type, Value};
use portico_machinery::{Node, Object};

use crate::POLICY_BUDGET;
use crate::compiler::{Compiler, Purpose};
use crate::composition::{ComposedVariables, Evaluation};
use crate::declarations::EnvironmentType;
use crate::evaluation_input::EvaluationInput;
use crate::expression::{Expression, ExpressionError};
use crate::match_conditions::{MatchConditions, MatchResult};
use crate::mutation_types::OBJECT;

/// Maximum number of wrong type names that one message lists.
const MAX_MISNAMED: usize = 10;
/// Maximum length of a type name in such a message, in bytes.
const MAX_NAME_BYTES: usize = 1_024;

/// Source of a MutatingAdmissionPolicy.
#[derive(Clone, Debug, Default)]
pub struct MutatingPolicySource<'s> {
    /// True if the policy has parameters.
    pub has_params: bool,
    /// Match conditions.
    pub match_conditions: Vec<&'s str>,
    /// Names and expressions of variables.
    pub variables: Vec<(&'s str, &'s str)>,
    /// Mutations, in order.
    pub mutations: Vec<MutationSource<'s>>,
}

/// Source of one mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutationSource<'s> {
    /// Expression that returns an apply configuration.
    ApplyConfiguration(&'s str),
    /// Expression that returns a JSON patch.
    JsonPatch(&'s str),
}

/// Compiled MutatingAdmissionPolicy.
#[derive(Debug)]
pub struct MutatingPolicy {
    match_conditions: MatchConditions,
    variables: ComposedVariables,
    mutations: Box<[Mutation]>,
}

#[derive(Debug)]
enum Mutation {
    ApplyConfiguration(Expression),
    JsonPatch(Expression),
}

/// Result of a mutation, to be applied to the object.
#[derive(Clone, Debug, PartialEq)]
pub enum MutationResult {
    /// Configuration for a server-side apply without managed fields.
    Apply(Object),
    /// JSON patch.
    Patch(Vec<u8>),
}

impl MutatingPolicy {
    /// Compiles a stored policy. Invalid expressions fail when they are evaluated.
    #[must_use]
    pub fn compile(source: &MutatingPolicySource<'_>) -> Self {
        let compiler = Compiler::with_variables(EnvironmentType::StoredExpressions, source.has_params);
        let variables = ComposedVariables::compile(&compiler, source.variables.iter().copied());
        let mutation = |source: &MutationSource<'_>| match source {
            MutationSource::ApplyConfiguration(text) => {
                Mutation::ApplyConfiguration(compiler.compile(Purpose::Configuration, text))
            }
            MutationSource::JsonPatch(text) => Mutation::JsonPatch(compiler.compile(Purpose::Patch, text)),
        };
        Self {
            match_conditions: MatchConditions::compile(&compiler, source.match_conditions.iter().copied()),
            mutations: source.mutations.iter().map(mutation).collect(),
            variables,
        }
    }

    /// Returns the number of mutations.
    #[must_use]
    pub fn mutation_count(&self) -> usize {
        self.mutations.len()
    }

    /// True if the mutation with this index is valid.
    #[must_use]
    pub fn is_valid(&self, index: usize) -> bool {
        let compiles = |mutation: &Mutation| {
            let (Mutation::ApplyConfiguration(expression) | Mutation::JsonPatch(expression)) = mutation;
            expression.compiled().is_ok()
        };
        self.mutations.get(index).is_some_and(compiles)
    }

    /// True if the policy has match conditions.
    #[must_use]
    pub fn has_match_conditions(&self) -> bool {
        !self.match_conditions.is_empty()
    }

    /// Returns all expressions: match conditions, variables, then mutations.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let mutations = self.mutations.iter().map(|mutation| {
            let (Mutation::ApplyConfiguration(expression) | Mutation::JsonPatch(expression)) = mutation;
            expression
        });
        self.match_conditions.expressions().chain(self.variables.expressions()).chain(mutations)
    }

    /// Evaluates the match conditions for a request.
    #[must_use]
    pub fn matches(&self, input: &EvaluationInput<'_>) -> MatchResult {
        self.match_conditions.evaluate_with(&self.variables, input)
    }

    /// Evaluates a mutation for a request, within the budget of a policy.
    ///
    /// # Errors
    /// The mutation cannot be computed.
    pub fn evaluate_mutation(
        &self,
        index: usize,
        input: &EvaluationInput<'_>,
    ) -> Result<MutationResult, ExpressionError> {
        let mut evaluation = Evaluation::new(&self.variables, input, POLICY_BUDGET);
        let Some(mutation) = self.mutations.get(index) else {
            return Err(ExpressionError::Failed(format!("there is no mutation {index}")));
        };
        let mut evaluate = |expression: &Expression| {
            expression.compiled().map_err(|error| ExpressionError::Failed(error.to_owned()))?;
            evaluation.evaluate(expression)
        };
        let result = match mutation {
            Mutation::ApplyConfiguration(expression) => configuration(&evaluate(expression)?),
            Mutation::JsonPatch(expression) => patch(&evaluate(expression)?),
        };
        result.map_err(ExpressionError::Failed)
    }
}

fn configuration(value: &Value<'_>) -> Result<MutationResult, String> {
    // Encode first: the limits of the encoder also bound the check of the names.
    let json = to_json(value).map_err(|error| error.to_string())?;
    check_names(value, OBJECT)?;
    if let Some((path, ty)) = find_untyped(value) {
        return Err(format!(
            "error applying patch: failed to convert patch object to typed object: {path}: no field can have a value of type '{ty}'"
        ));
    }
    Object::from_node(Node(json)).map(MutationResult::Apply).map_err(|error| error.to_string())
}

/// Returns the path and type of the first value whose type no field of an object has. JSON could represent some of these values,
/// but upstream applies them without conversion to JSON.
fn find_untyped(value: &Value<'_>) -> Option<(String, Type)> {
    let find_in = |at: &dyn Fn() -> String, element: &Value<'_>| {
        find_untyped(element).map(|(place, ty)| (at() + &place, ty))
    };
    match value {
        Value::Null | Value::Uint(_) | Value::Bytes(_) | Value::Timestamp(_) | Value::Duration(_) => {
            Some((String::new(), value.type_of()))
        }
        Value::Map(map @ (Map::Object { .. } | Map::Computed(_))) => {
            let mut entries = map.entries().unwrap_or_default().into_iter();
            entries.find_map(|(key, value)| {
                find_in(&|| format!(".{}", key.as_str().unwrap_or_default()), &value)
            })
        }
        Value::List(list @ List::Computed { .. }) => {
            list.iter().flatten().enumerate().find_map(|(at, value)| find_in(&|| format!("[{at}]"), &value))
        }
        _ => None,
    }
}

fn patch(value: &Value<'_>) -> Result<MutationResult, String> {
    let Value::List(operations) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let (mut patch, writer) = (Vec::new(), JsonWriter::new());
    for operation in operations.iter() {
        let operation = operation.map_err(|error| error.to_string())?;
        patch.push(self::operation(&operation, &writer)?.to_json());
    }
    let mut json = vec![b'['];
    json.extend(patch.join(&b','));
    json.push(b']');
    Ok(MutationResult::Patch(json))
}

/// Returns one operation with the members that RFC 6902 defines.
fn operation(value: &Value<'_>, writer: &JsonWriter) -> Result<Object, String> {
    let Value::Map(fields) = value else {
        return Err("an operation of a JSON patch is not an object".to_owned());
    };
    let field = |name: &str| fields.get_str(name).map_err(|error: EvalError| error.to_string());
    let encode = |value: &Value<'_>| {
        writer.write(value).map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })
    };
    let mut operation = Object::default();
    for (name, always) in [("op", true), ("path", true), ("from", false)] {
        match field(name)? {
            Some(text @ Value::String(_)) if always || text.cost_size() > 0 => {
                operation.put(&[name], Node(encode(&text)?));
            }
            None if always => operation.set(&[name], ""),
            _ => {}
        }
    }
    if let Some(value) = field("value")? {
        let json = encode(&value)?;
        if let Value::Map(Map::Object { name, .. }) = &value {
            check_names(&value, name)?;
        }
        operation.put(&["value"], Node(json));
    }
    Ok(operation)
}

/// Checks that the type name of each object literal is its field path, such as `Object.spec`.
fn check_names(value: &Value<'_>, root: &str) -> Result<(), String> {
    let mut errors = Vec::new();
    let _ = collect_misnamed(value, &mut root.to_owned(), &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", errors.join("\n"))) }
}

/// Adds an error for each wrong name, up to [`MAX_MISNAMED`]. A value can contain another value many times.
fn collect_misnamed(value: &Value<'_>, path: &mut String, errors: &mut Vec<String>) -> ControlFlow<()> {
    match value {
        Value::Map(map @ Map::Object { name, .. }) => {
            if **name != **path {
                errors.push(name_error(name, path));
                if errors.len() >= MAX_MISNAMED {
                    return Break(());
                }
            }
            for (field, element) in map.entries().unwrap_or_default() {
                let length = path.len();
                path.push('.');
                path.push_str(field.as_str().unwrap_or_default());
                collect_misnamed(&element, path, errors)?;
                path.truncate(length);
            }
        }
        Value::Map(map @ Map::Computed(_)) => {
            for (_, element) in map.entries().unwrap_or_default() {
                collect_misnamed(&element, path, errors)?;
            }
        }
        Value::List(list @ List::Computed { .. }) => {
            for element in list.iter().flatten() {
                collect_misnamed(&element, path, errors)?;
            }
        }
        _ => {}
    }
    Continue(())
}

fn name_error(name: &str, place: &str) -> String {
    let truncated = |name: &str| name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned();
    let (name, place) = (truncated(name), truncated(place));
    format!(
        "unexpected type name {name:?}, expected {place:?}, which matches field name path from root Object type"
    )
}
