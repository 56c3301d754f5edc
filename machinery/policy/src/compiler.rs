//! Compiles the expressions of one policy or webhook (upstream's `CompositedCompiler`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use portico_cel::decl::FieldTypes;
use portico_cel::{Environment, Meter, Type};

use crate::changing;
use crate::declarations::{Declarations, Release};
use crate::expression::{self, Expression, Returns};

/// What upstream calls the type of `variables`.
pub(crate) const VARIABLES: &str = "kubernetes.variables";

/// What an expression is for: that says what it may name and what it must evaluate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Whether a request is concerned at all.
    Condition,
    /// A value that others name.
    Variable,
    /// What must hold of a request.
    Validation,
    /// The message where it does not.
    Message,
    /// What the audit log is to say.
    Annotation,
    /// A configuration that is applied to the object: `Object{...}`.
    Configuration,
    /// A JSON patch: a list of `JSONPatch{...}`.
    Patch,
}

/// Compiles expressions in their order: a variable is known to what is compiled behind it.
pub struct Compiler {
    release: Release,
    /// Whether there are parameters.
    params: bool,
    /// Nothing where expressions may not name `variables` at all.
    variables: Option<Arc<Variables>>,
    /// Pays for the constants and patterns of all expressions.
    meter: Meter,
}

/// The types of the variables that there are so far.
#[derive(Debug, Default)]
pub(crate) struct Variables(RwLock<HashMap<Box<str>, Type>>);

impl Variables {
    /// Makes a variable known.
    pub(crate) fn declare(&self, name: &str, ty: Type) {
        self.0.write().insert(name.into(), plain(ty));
    }
}

impl FieldTypes for Variables {
    fn field(&self, name: &str) -> Option<Type> {
        self.0.read().get(name).cloned()
    }
}

impl Purpose {
    fn returns(self) -> Returns {
        match self {
            Self::Condition | Self::Validation => Returns::Bool,
            Self::Message => Returns::Text,
            Self::Annotation => Returns::TextOrNull,
            Self::Variable => Returns::Any,
            Self::Configuration => Returns::Object,
            Self::Patch => Returns::Patch,
        }
    }
}

impl Compiler {
    /// For expressions without `variables`.
    #[must_use]
    pub fn new(release: Release, params: bool) -> Self {
        Self { release, params, variables: None, meter: Meter::of_compilation() }
    }

    /// For expressions that may name variables, of which there are none yet.
    #[must_use]
    pub fn composing(release: Release, params: bool) -> Self {
        Self { variables: Some(Arc::default()), ..Self::new(release, params) }
    }

    /// Compiles an expression, and checks what it evaluates to.
    ///
    /// # Errors
    /// What is wrong, in upstream's words.
    pub fn check(&self, purpose: Purpose, text: &str) -> Result<Type, String> {
        let program = expression::checked(&self.environment(purpose), text, purpose.returns(), &self.meter)?;
        Ok(program.result_type().clone())
    }

    /// Compiles an expression that is evaluated later; what is wrong with it is reported then.
    #[must_use]
    pub fn compile(&self, purpose: Purpose, text: &str) -> Expression {
        Expression::compile(&self.environment(purpose), text, purpose.returns(), &self.meter)
    }

    /// Makes a variable known to what is compiled from now on. One that does not compile may be anything.
    pub fn declare(&self, name: &str, ty: Type) {
        if let Some(variables) = &self.variables {
            variables.declare(name, ty);
        }
    }

    fn environment(&self, purpose: Purpose) -> Environment {
        let declarations = Declarations { params: self.params, authorizer: purpose != Purpose::Message };
        let changes = matches!(purpose, Purpose::Configuration | Purpose::Patch);
        let builder = declarations.over(if changes {
            changing::environment(self.release).to_builder()
        } else {
            Environment::builder().language(self.release.language())
        });
        match &self.variables {
            Some(variables) => {
                let fields: Arc<dyn FieldTypes> = Arc::<Variables>::clone(variables);
                builder.variable("variables", Type::open_object(VARIABLES, fields)).build()
            }
            None => builder.build(),
        }
    }
}

/// The type that others see: what upstream's declarations cannot say may be anything.
fn plain(ty: Type) -> Type {
    match ty {
        Type::List(items) => Type::list(plain((*items).clone())),
        Type::Map(entry) => Type::map(plain(entry.0.clone()), plain(entry.1.clone())),
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
