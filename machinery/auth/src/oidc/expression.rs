//! Expressions over claims and over the resulting user (upstream's pkg/authentication/cel).

use std::sync::{Arc, LazyLock};

use portico_cel::decl::{DeclKind, Field, ListKind};
use portico_cel::value::{Key, MapBuilder, Text};
use portico_cel::{DeclType, Environment, Program, Type, Value};
use portico_machinery::UserInfo;

use crate::expressions;

/// Name of the variable for claims.
const CLAIMS: &str = "claims";
/// Name of the variable for the user.
const USER: &str = "user";

/// Compiled expression. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Expression {
    text: Arc<str>,
    variable: &'static str,
    program: Program,
}

impl Expression {
    /// Compiles an expression over claims, of any type.
    ///
    /// # Errors
    /// Returns the compile error.
    pub fn for_claims(text: &str) -> Result<Self, String> {
        Self::compile(text, CLAIMS, Type::map(Type::String, Type::Any))
    }

    /// Compiles a condition over claims.
    ///
    /// # Errors
    /// Returns the compile error.
    pub fn claims_condition(text: &str) -> Result<Self, String> {
        Self::for_claims(text)?.require_boolean()
    }

    /// Compiles a condition over the user.
    ///
    /// # Errors
    /// Returns the compile error.
    pub fn user_condition(text: &str) -> Result<Self, String> {
        Self::compile(text, USER, USER_INFO.ty.clone())?.require_boolean()
    }

    fn compile(text: &str, variable: &'static str, ty: Type) -> Result<Self, String> {
        let language = Arc::clone(expressions::language());
        let environment =
            Environment::builder().language(language).variable(variable, ty).unescape_fields().build();
        let program = environment.compile(text).map_err(|error| error.to_string())?;
        Ok(Self { text: text.into(), variable, program })
    }

    fn require_boolean(self) -> Result<Self, String> {
        if *self.program.result_type() == Type::Bool {
            Ok(self)
        } else {
            Err("must evaluate to bool".to_owned())
        }
    }

    /// Returns the source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if the expression selects this claim by name.
    #[must_use]
    pub fn uses_claim(&self, name: &str) -> bool {
        self.program.selects(CLAIMS, name)
    }

    /// Evaluates the expression.
    pub(super) fn evaluate(&self, value: &Value<'static>) -> Result<Value<'static>, String> {
        let result = self.program.run(&[(self.variable, value.clone())]);
        result.map_err(|error| format!("expression '{}' resulted in error: {error}", self.text))
    }

    /// Evaluates the expression to a string; the error is upstream's `kind claim expression must return a string`.
    pub(super) fn evaluate_text(&self, claims: &Value<'static>, kind: &str) -> Result<String, String> {
        match self.evaluate(claims)? {
            Value::String(text) => Ok(text.to_string()),
            _ => Err(format!("{kind} claim expression must return a string")),
        }
    }

    /// Evaluates the condition, and returns an error with `message` if it does not hold (`checkValidationRulesEvaluation`).
    pub(super) fn require(&self, value: &Value<'static>, message: &str) -> Result<(), String> {
        match self.evaluate(value)? {
            Value::Bool(true) => Ok(()),
            Value::Bool(false) => Err(format!("validation expression '{}' failed: {message}", self.text)),
            _ => Err("validation expression must return a boolean".to_owned()),
        }
    }
}

/// Converts the result of an expression to strings, without empty ones (`convertCELValueToStringList`).
pub(super) fn texts(value: Value<'static>) -> Result<Vec<String>, &'static str> {
    const WRONG: &str = "expression must return a string or a list of strings";
    let items = match value {
        Value::Null => Vec::new(),
        text @ Value::String(_) => vec![text],
        Value::List(list) => list.to_vec().map_err(|_| WRONG)?,
        _ => return Err(WRONG),
    };
    let mut texts = Vec::new();
    for item in items {
        let Value::String(text) = item else { return Err(WRONG) };
        if !text.is_empty() {
            texts.push(text.to_string());
        }
    }
    Ok(texts)
}

/// Returns the user as a CEL value (`newUserInfoValue`).
pub(super) fn user_value(user: &UserInfo) -> Value<'static> {
    let text = |text: &str| Value::text(text);
    let list = |texts: &[String]| Value::list(texts.iter().map(|one| text(one)).collect());
    let map = |entries: Vec<(&str, Value<'static>)>| {
        let mut members = MapBuilder::default();
        members.extend(
            entries.into_iter().map(|(name, value)| (Key::String(Text::from(name.to_owned())), value)),
        );
        Value::Map(members.into())
    };
    let extra = user.extra.iter().map(|(name, values)| (name.as_str(), list(values))).collect();
    map(vec![
        ("username", text(&user.name)),
        ("uid", text(&user.uid)),
        ("groups", list(&user.groups)),
        ("extra", map(extra)),
    ])
}

/// Type `kubernetes.UserInfo` (upstream's `buildUserType`).
static USER_INFO: LazyLock<DeclType> = LazyLock::new(|| {
    let text = Arc::new(DeclType::scalar(DeclKind::String, u64::MAX, 0));
    let texts = Arc::new(DeclType::list(Arc::clone(&text), ListKind::Atomic, u64::MAX));
    let extra = Arc::new(DeclType::map(Arc::clone(&texts), u64::MAX));
    let field = |name: &str, of: &Arc<DeclType>| Field {
        name: name.into(),
        escaped: name.into(),
        of: Arc::clone(of),
    };
    let fields =
        vec![field("username", &text), field("uid", &text), field("groups", &texts), field("extra", &extra)];
    DeclType::object("kubernetes.UserInfo", fields, 0)
});
