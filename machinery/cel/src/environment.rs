//! Environments: which variables, functions, macros and types an expression may use.

use std::sync::Arc;

use crate::function::Function;
use crate::language::{Language, OverloadCollision};
use crate::library::Library;
use crate::types::{ObjectTypes, Type};
use crate::variable::Variable;

/// Variables over a language: what expressions of one place may use.
#[derive(Clone, Debug)]
pub struct Environment {
    pub(crate) language: Arc<Language>,
    pub(crate) variables: Vec<Variable>,
    /// Who knows the types that may be written out; nothing where none may.
    pub(crate) objects: Option<Arc<dyn ObjectTypes>>,
    /// Whether expressions name fields of any JSON escaped.
    pub(crate) unescaping: bool,
}

/// Why an environment cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two variables have one name.
    #[error("variable {0} is declared twice")]
    VariableTwice(String),
    /// Two overloads of a function take the same values.
    #[error(transparent)]
    Overload(#[from] OverloadCollision),
}

/// Builds an [`Environment`].
///
/// ```
/// use portico_cel::{Environment, Function, Overload, Type, Value, library};
///
/// let greeting = String::from("hello");
/// let environment = Environment::builder()
///     .variable("name", Type::String)
///     .library(library::strings())
///     .function(Function::new(
///         "greet",
///         vec![Overload::new("greet_string", [Type::String], Type::String, move |call| {
///             Ok(Value::text(format!("{greeting}, {}", call.str(0)?)))
///         })],
///     ))
///     .build()?;
/// let program = environment.compile("greet(name).upperAscii()")?;
/// let result = program.run(&[("name", Value::from("world"))])?;
/// assert_eq!(result.as_str()?, "HELLO, WORLD");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    language: Option<Arc<Language>>,
    variables: Vec<Variable>,
    libraries: Vec<Library>,
    functions: Vec<Function>,
}

impl Builder {
    /// Begins with this language in the place of the standard functions alone.
    #[must_use]
    pub fn language(mut self, language: Arc<Language>) -> Self {
        self.language = Some(language);
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, ty: Type) -> Self {
        self.variables.push(Variable { name: Arc::from(name), ty });
        self
    }

    /// Adds a library.
    #[must_use]
    pub fn library(mut self, library: Library) -> Self {
        self.libraries.push(library);
        self
    }

    /// Adds a function, or overloads to one that is there.
    #[must_use]
    pub fn function(mut self, function: Function) -> Self {
        self.functions.push(function);
        self
    }

    /// The environment.
    ///
    /// # Errors
    /// Two variables have one name, or two overloads of a function take the same values.
    pub fn build(self) -> Result<Environment, BuildError> {
        let Self { language, variables, libraries, functions } = self;
        for (index, variable) in variables.iter().enumerate() {
            if variables[..index].iter().any(|earlier| earlier.name == variable.name) {
                return Err(BuildError::VariableTwice(variable.name.to_string()));
            }
        }
        let mut language = language.unwrap_or_else(|| Arc::new(Language::standard()));
        if !libraries.is_empty() || !functions.is_empty() {
            let extended = Arc::make_mut(&mut language);
            libraries.into_iter().try_for_each(|library| extended.add(library))?;
            functions.into_iter().try_for_each(|function| extended.add_function(function))?;
        }
        Ok(Environment { language, variables, objects: None, unescaping: false })
    }
}

impl Environment {
    /// Begins an environment of the language's own functions.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A language without variables.
    #[must_use]
    pub fn new(language: Arc<Language>) -> Self {
        Self { language, variables: Vec::new(), objects: None, unescaping: false }
    }

    /// The same with types that expressions may write out.
    #[must_use]
    pub fn with_objects(self, objects: Arc<dyn ObjectTypes>) -> Self {
        Self { objects: Some(objects), ..self }
    }

    /// The same where `value.a__dot__b` is the member `a.b`, whatever the value is: for JSON that nothing declares. Objects with
    /// declared fields do not go along with it.
    #[must_use]
    pub fn unescaping(self) -> Self {
        Self { unescaping: true, ..self }
    }

    /// The same with a variable more, which hides an earlier one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, ty: Type) -> Self {
        self.variables.push(Variable { name: Arc::from(name), ty });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Overload;
    use crate::library;
    use crate::value::Value;

    fn twice() -> Function {
        Function::new(
            "twice",
            vec![Overload::global("twice_int", vec![Type::Int], Type::Int, |call| {
                Ok(Value::Int(call.int(0)?.saturating_mul(2)))
            })],
        )
    }

    #[test]
    fn a_variable_is_declared_once() {
        let built = Environment::builder().variable("a", Type::Int).variable("a", Type::Bool).build();
        assert_eq!(built.unwrap_err().to_string(), "variable a is declared twice");
    }

    #[test]
    fn an_overload_that_would_never_be_called_is_refused() {
        let built = Environment::builder().function(twice()).function(twice()).build();
        assert_eq!(
            built.unwrap_err().to_string(),
            "overload twice_int of function twice takes what twice_int takes"
        );
        let built = Environment::builder().library(library::strings()).library(library::strings()).build();
        assert!(matches!(built, Err(BuildError::Overload(_))));
    }

    #[test]
    fn a_shared_language_does_not_learn_the_functions_of_one_environment() {
        let language = Arc::new(Language::standard());
        let with = Environment::builder().language(language.clone()).function(twice()).build().unwrap();
        assert!(with.language.function("twice").is_some() && language.function("twice").is_none());
    }
}
