//! Compiler for the expressions of one policy or webhook (upstream's `CompositedCompiler`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use portico_cel::decl::FieldTypes;
use portico_cel::{Environment, Meter, Type};

use crate::declarations::{Declarations, EnvironmentType};
use crate::expression::{self, Expression, ResultType};
use crate::mutation_types;

/// Name of the type of `variables`, as in upstream.
pub(crate) const VARIABLES: &str = "kubernetes.variables";

/// Purpose of an expression, which determines its variables and its result type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Match condition of a request.
    Condition,
    /// Composed variable, which other expressions use.
    Variable,
    /// Validation of a request.
    Validation,
    /// Message of a failed validation.
    Message,
    /// Value of an audit annotation.
    Annotation,
    /// Apply configuration for the object: `Object{...}`.
    Configuration,
    /// JSON patch: a list of `JSONPatch{...}`.
    Patch,
}

/// Compiles expressions in order. A variable can be used in expressions that are compiled after it.
pub struct Compiler {
    environment_type: EnvironmentType,
    /// True if the policy has parameters.
    has_params: bool,
    /// Declared variables; `None` if expressions cannot use `variables`.
    variables: Option<Arc<DeclaredVariables>>,
    /// Budget for the constants and patterns of all expressions.
    meter: Meter,
}

/// Types of the variables that are declared so far.
#[derive(Debug, Default)]
pub(crate) struct DeclaredVariables(RwLock<HashMap<Box<str>, Type>>);

impl DeclaredVariables {
    /// Declares a variable.
    pub(crate) fn declare(&self, name: &str, ty: Type) {
        self.0.write().insert(name.into(), declared_type(ty));
    }
}

impl FieldTypes for DeclaredVariables {
    fn field(&self, name: &str) -> Option<Type> {
        self.0.read().get(name).cloned()
    }
}

impl Purpose {
    fn result_type(self) -> ResultType {
        match self {
            Self::Condition | Self::Validation => ResultType::Bool,
            Self::Message => ResultType::Text,
            Self::Annotation => ResultType::TextOrNull,
            Self::Variable => ResultType::Any,
            Self::Configuration => ResultType::Object,
            Self::Patch => ResultType::Patch,
        }
    }
}

impl Compiler {
    /// Creates a compiler for expressions without `variables`.
    #[must_use]
    pub fn new(environment_type: EnvironmentType, has_params: bool) -> Self {
        Self { environment_type, has_params, variables: None, meter: Meter::of_compilation() }
    }

    /// Creates a compiler for expressions with `variables`, none of which is declared yet.
    #[must_use]
    pub fn with_variables(release: EnvironmentType, params: bool) -> Self {
        Self { variables: Some(Arc::default()), ..Self::new(release, params) }
    }

    /// Compiles an expression and checks its result type.
    ///
    /// # Errors
    /// Message of upstream.
    pub fn check(&self, purpose: Purpose, text: &str) -> Result<Type, String> {
        let program = expression::compile_checked(
            &self.environment(purpose),
            text,
            purpose.result_type(),
            &self.meter,
        )?;
        Ok(program.result_type().clone())
    }

    /// Compiles an expression for later evaluation. Each evaluation of an invalid expression fails.
    #[must_use]
    pub fn compile(&self, purpose: Purpose, text: &str) -> Expression {
        Expression::compile(&self.environment(purpose), text, purpose.result_type(), &self.meter)
    }

    /// Declares a variable for expressions that are compiled afterwards. An invalid variable must be declared with any type.
    pub fn declare(&self, name: &str, ty: Type) {
        if let Some(variables) = &self.variables {
            variables.declare(name, ty);
        }
    }

    fn environment(&self, purpose: Purpose) -> Environment {
        let declarations = Declarations { params: self.has_params, authorizer: purpose != Purpose::Message };
        let changes = matches!(purpose, Purpose::Configuration | Purpose::Patch);
        let builder = declarations.add_to(if changes {
            mutation_types::environment(self.environment_type).to_builder()
        } else {
            Environment::builder().language(self.environment_type.language())
        });
        match &self.variables {
            Some(variables) => {
                let fields: Arc<dyn FieldTypes> = Arc::<DeclaredVariables>::clone(variables);
                builder.variable("variables", Type::open_object(VARIABLES, fields)).build()
            }
            None => builder.build(),
        }
    }
}

/// Returns the type that other expressions see. Types without a declaration in upstream become any type.
fn declared_type(ty: Type) -> Type {
    match ty {
        Type::List(items) => Type::list(declared_type((*items).clone())),
        Type::Map(entry) => Type::map(declared_type(entry.0.clone()), declared_type(entry.1.clone())),
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Timestamp
        | Type::Duration => ty,
        _ => Type::Dyn,
    }
}
