//! Environments: variables, functions, macros and types that an expression may use.

use std::sync::Arc;

use crate::function::Function;
use crate::language::{Language, OverloadCollision};
use crate::library::Library;
#[cfg(feature = "regex")]
use crate::pattern_cache::PatternCache;
use crate::types::{ObjectTypes, Type};
use crate::variable::Variable;

/// Variables and a [`Language`]: everything that an expression may use. Immutable; build one with [`Environment::builder`]
/// and compile expressions with [`Environment::compile`].
#[derive(Clone, Debug)]
pub struct Environment {
    pub(crate) language: Arc<Language>,
    pub(crate) variables: Vec<Variable>,
    /// Types that expressions may construct.
    pub(crate) objects: Option<Arc<dyn ObjectTypes>>,
    /// True if expressions select fields of JSON by their escaped names.
    pub(crate) unescaping: bool,
}

/// Builds an [`Environment`].
///
/// ```
/// use portico_cel::{Environment, Function, Overload, Type, Value, library};
///
/// let greeting = String::from("hello");
/// let environment = Environment::builder()
///     .variable("name", Type::String)
///     .library(library::strings())?
///     .function(Function::new(
///         "greet",
///         vec![Overload::new("greet_string", [Type::String], Type::String, move |call| {
///             Ok(Value::text(format!("{greeting}, {}", call.str(0)?)))
///         })],
///     ))?
///     .build();
/// let program = environment.compile("greet(name).upperAscii()")?;
/// let result = program.run(&[("name", Value::from("world"))])?;
/// assert_eq!(result.as_str(), Some("HELLO, WORLD"));
///
/// // Derive an environment with another variable.
/// let extended = environment.to_builder().variable("count", Type::Int).build();
/// assert!(extended.compile("greet(name) + string(count)").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder(Environment);

impl Builder {
    /// Replaces the language, including functions and libraries that were added before. The default is [`Language::standard`].
    #[must_use]
    pub fn language(mut self, language: impl Into<Arc<Language>>) -> Self {
        self.0.language = language.into();
        self
    }

    /// Declares a variable. It replaces an earlier variable of the same name.
    #[must_use]
    pub fn variable(mut self, name: &str, ty: Type) -> Self {
        self.0.variables.retain(|variable| *variable.name != *name);
        self.0.variables.push(Variable { name: Arc::from(name), ty });
        self
    }

    /// Adds a library.
    ///
    /// # Errors
    /// An overload has the parameters of an overload that is declared already.
    pub fn library(mut self, library: Library) -> Result<Self, OverloadCollision> {
        Arc::make_mut(&mut self.0.language).add(library)?;
        Ok(self)
    }

    /// Adds a function, or further overloads of a function that is declared already.
    ///
    /// # Errors
    /// An overload has the parameters of an overload that is declared already.
    pub fn function(mut self, function: Function) -> Result<Self, OverloadCollision> {
        Arc::make_mut(&mut self.0.language).add_function(function)?;
        Ok(self)
    }

    /// Allows expressions to construct objects: `Object.spec{replicas: 3}`.
    #[must_use]
    pub fn objects(mut self, objects: Arc<dyn ObjectTypes>) -> Self {
        self.0.objects = Some(objects);
        self
    }

    /// Selects fields of any JSON by their escaped names: `value.a__dot__b` reads the member `a.b`. Without it, only fields that
    /// a [`DeclType`](crate::DeclType) declares have escaped names. Do not combine the two.
    #[must_use]
    pub fn unescape_fields(mut self) -> Self {
        self.0.unescaping = true;
        self
    }

    /// Returns the environment.
    #[must_use]
    pub fn build(self) -> Environment {
        self.0
    }
}

impl Environment {
    /// Returns a builder with the standard language and no variables.
    #[must_use]
    pub fn builder() -> Builder {
        let language = Arc::new(Language::standard());
        Builder(Self { language, variables: Vec::new(), objects: None, unescaping: false })
    }

    /// Returns a builder that starts with this environment.
    #[must_use]
    pub fn to_builder(&self) -> Builder {
        Builder(self.clone())
    }

    /// Returns the cache of regular expressions that the programs of this environment share.
    #[cfg(feature = "regex")]
    #[must_use]
    pub fn pattern_cache(&self) -> &PatternCache {
        self.language.pattern_cache()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Overload;
    use crate::library;
    use crate::value::Value;

    fn twice_function() -> Function {
        Function::new(
            "twice",
            vec![Overload::global("twice_int", vec![Type::Int], Type::Int, |call| {
                Ok(Value::Int(call.int(0)?.saturating_mul(2)))
            })],
        )
    }

    #[test]
    fn a_variable_replaces_an_earlier_one_of_its_name() {
        let environment = Environment::builder().variable("a", Type::Int).variable("a", Type::Bool).build();
        assert_eq!(environment.variables.len(), 1);
        assert!(environment.compile("a && true").is_ok());
        let derived = environment.to_builder().variable("a", Type::Int).build();
        assert!(derived.compile("a + 1").is_ok() && environment.compile("a + 1").is_err());
    }

    #[test]
    fn overloads_that_are_never_called_are_rejected() {
        let built = Environment::builder().function(twice_function()).unwrap().function(twice_function());
        assert_eq!(
            built.unwrap_err().to_string(),
            "overload twice_int of function twice has the same parameters as twice_int"
        );
        let built = Environment::builder().library(library::strings()).unwrap().library(library::strings());
        assert!(built.is_err());
    }

    #[test]
    fn shared_languages_are_not_modified_by_environments() {
        let language = Arc::new(Language::standard());
        let extended =
            Environment::builder().language(language.clone()).function(twice_function()).unwrap().build();
        assert!(extended.language.function("twice").is_some() && language.function("twice").is_none());
    }
}
