//! MutatingAdmissionPolicies as they are compiled, and what they make of a request (upstream's `mutating` and `patch`).

use std::ops::ControlFlow::{self, Break, Continue};

use portico_cel::value::{JsonWriter, List, Map, to_json};
use portico_cel::{EvalError, Type, Value};
use portico_machinery::{Node, Object};

use crate::POLICY_BUDGET;
use crate::changing::OBJECT;
use crate::compiler::{Compiler, Purpose};
use crate::composition::{Composition, Evaluation};
use crate::conditions::{Conditions, Matched};
use crate::declarations::Release;
use crate::expression::{Expression, Problem};
use crate::subject::Subject;

/// Most wrong names of types that one message lists.
const MAX_MISNAMED: usize = 10;
/// Bytes of a name that such a message shows.
const MAX_SHOWN_NAME: usize = 1_024;

/// What a policy is made of, as it is written.
#[derive(Clone, Debug, Default)]
pub struct MutatingSource<'s> {
    /// Whether there are parameters.
    pub params: bool,
    /// What must hold for the policy to be about a request.
    pub conditions: Vec<&'s str>,
    /// Names and expressions.
    pub variables: Vec<(&'s str, &'s str)>,
    /// Changes, in order.
    pub mutations: Vec<MutationSource<'s>>,
}

/// One change, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutationSource<'s> {
    /// An expression that makes a configuration.
    Configuration(&'s str),
    /// An expression that makes a JSON patch.
    Patch(&'s str),
}

/// A compiled policy.
#[derive(Debug)]
pub struct MutatingPolicy {
    conditions: Conditions,
    composition: Composition,
    mutations: Box<[Mutation]>,
}

#[derive(Debug)]
enum Mutation {
    Configuration(Expression),
    Patch(Expression),
}

/// What a mutation does to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// This is applied to it, without owners.
    Apply(Object),
    /// This JSON patch is.
    Patch(Vec<u8>),
}

impl MutatingPolicy {
    /// Compiles a stored policy; what does not compile is a failure of each evaluation.
    #[must_use]
    pub fn compile(source: &MutatingSource<'_>) -> Self {
        let compiler = Compiler::composing(Release::Stored, source.params);
        let composition = Composition::compile(&compiler, source.variables.iter().copied());
        let mutation = |source: &MutationSource<'_>| match source {
            MutationSource::Configuration(text) => {
                Mutation::Configuration(compiler.compile(Purpose::Configuration, text))
            }
            MutationSource::Patch(text) => Mutation::Patch(compiler.compile(Purpose::Patch, text)),
        };
        Self {
            conditions: Conditions::compile(&compiler, source.conditions.iter().copied()),
            mutations: source.mutations.iter().map(mutation).collect(),
            composition,
        }
    }

    /// How many changes it makes.
    #[must_use]
    pub fn mutations(&self) -> usize {
        self.mutations.len()
    }

    /// Whether a change compiles.
    #[must_use]
    pub fn compiles(&self, index: usize) -> bool {
        let compiles = |mutation: &Mutation| {
            let (Mutation::Configuration(expression) | Mutation::Patch(expression)) = mutation;
            expression.compiled().is_ok()
        };
        self.mutations.get(index).is_some_and(compiles)
    }

    /// Whether conditions may leave out a request.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Its expressions: conditions, variables, then changes.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let mutations = self.mutations.iter().map(|mutation| {
            let (Mutation::Configuration(expression) | Mutation::Patch(expression)) = mutation;
            expression
        });
        self.conditions.expressions().chain(self.composition.expressions()).chain(mutations)
    }

    /// Whether its conditions hold of a request.
    #[must_use]
    pub fn matches(&self, subject: &Subject<'_>) -> Matched {
        self.conditions.evaluate_with(&self.composition, subject)
    }

    /// What a change comes to for a request, within the budget of a policy.
    ///
    /// # Errors
    /// The mutation cannot be computed.
    pub fn change(&self, index: usize, subject: &Subject<'_>) -> Result<Change, Problem> {
        let mut evaluation = Evaluation::new(&self.composition, subject, POLICY_BUDGET);
        let Some(mutation) = self.mutations.get(index) else {
            return Err(Problem::Failed(format!("there is no mutation {index}")));
        };
        let mut evaluate = |expression: &Expression| {
            expression.compiled().map_err(|error| Problem::Failed(error.to_owned()))?;
            evaluation.evaluate(expression)
        };
        let change = match mutation {
            Mutation::Configuration(expression) => configuration(&evaluate(expression)?),
            Mutation::Patch(expression) => patch(&evaluate(expression)?),
        };
        change.map_err(Problem::Failed)
    }
}

fn configuration(value: &Value<'_>) -> Result<Change, String> {
    // Written first: that bounds what the names are looked for in.
    let json = to_json(value).map_err(|error| error.to_string())?;
    check_names(value, OBJECT)?;
    if let Some((place, ty)) = untyped(value) {
        return Err(format!(
            "error applying patch: failed to convert patch object to typed object: {place}: a value of type '{ty}' fits no field"
        ));
    }
    Object::from_node(Node(json)).map(Change::Apply).map_err(|error| error.to_string())
}

/// The place and type of the first value that no field takes. JSON could express it, but upstream applies values without that.
fn untyped(value: &Value<'_>) -> Option<(String, Type)> {
    let held =
        |at: &dyn Fn() -> String, held: &Value<'_>| untyped(held).map(|(place, ty)| (at() + &place, ty));
    match value {
        Value::Null | Value::Uint(_) | Value::Bytes(_) | Value::Timestamp(_) | Value::Duration(_) => {
            Some((String::new(), value.type_of()))
        }
        Value::Map(map @ (Map::Object { .. } | Map::Computed(_))) => {
            let mut entries = map.entries().unwrap_or_default().into_iter();
            entries
                .find_map(|(key, value)| held(&|| format!(".{}", key.as_str().unwrap_or_default()), &value))
        }
        Value::List(list @ List::Computed { .. }) => {
            list.iter().flatten().enumerate().find_map(|(at, value)| held(&|| format!("[{at}]"), &value))
        }
        _ => None,
    }
}

fn patch(value: &Value<'_>) -> Result<Change, String> {
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
    Ok(Change::Patch(json))
}

/// One operation, with the members that RFC 6902 knows.
fn operation(value: &Value<'_>, writer: &JsonWriter) -> Result<Object, String> {
    let Value::Map(fields) = value else {
        return Err("an operation of a JSON patch is no object".to_owned());
    };
    let field = |name: &str| fields.get_str(name).map_err(|error: EvalError| error.to_string());
    let written = |value: &Value<'_>| {
        writer.write(value).map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })
    };
    let mut operation = Object::default();
    for (name, always) in [("op", true), ("path", true), ("from", false)] {
        match field(name)? {
            Some(text @ Value::String(_)) if always || text.cost_size() > 0 => {
                operation.put(&[name], Node(written(&text)?));
            }
            None if always => operation.set(&[name], ""),
            _ => {}
        }
    }
    if let Some(value) = field("value")? {
        let json = written(&value)?;
        if let Value::Map(Map::Object { name, .. }) = &value {
            check_names(&value, name)?;
        }
        operation.put(&["value"], Node(json));
    }
    Ok(operation)
}

/// What is written out in a place must be of the type that is called after the place.
fn check_names(value: &Value<'_>, root: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    let _ = collect_misnamed(value, &mut root.to_owned(), &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

/// Collects a message for each wrong name until there are [`MAX_MISNAMED`]: a value may contain another one many times.
fn collect_misnamed(value: &Value<'_>, place: &mut String, wrong: &mut Vec<String>) -> ControlFlow<()> {
    match value {
        Value::Map(map @ Map::Object { name, .. }) => {
            if **name != **place {
                wrong.push(misnamed(name, place));
                if wrong.len() >= MAX_MISNAMED {
                    return Break(());
                }
            }
            for (field, held) in map.entries().unwrap_or_default() {
                let length = place.len();
                place.push('.');
                place.push_str(field.as_str().unwrap_or_default());
                collect_misnamed(&held, place, wrong)?;
                place.truncate(length);
            }
        }
        Value::Map(map @ Map::Computed(_)) => {
            for (_, held) in map.entries().unwrap_or_default() {
                collect_misnamed(&held, place, wrong)?;
            }
        }
        Value::List(list @ List::Computed { .. }) => {
            for held in list.iter().flatten() {
                collect_misnamed(&held, place, wrong)?;
            }
        }
        _ => {}
    }
    Continue(())
}

fn misnamed(name: &str, place: &str) -> String {
    let shown = |name: &str| name[..name.floor_char_boundary(MAX_SHOWN_NAME)].to_owned();
    let (name, place) = (shown(name), shown(place));
    format!(
        "unexpected type name {name:?}, expected {place:?}, which matches field name path from root Object type"
    )
}
