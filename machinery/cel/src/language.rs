//! Languages: the functions, types and macros that the expressions of many environments share.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::function::{Function, Overload};
use crate::library::{self, Library};
use crate::macros::{EXISTS_ONE, Macro};
#[cfg(feature = "regex")]
use crate::pattern_cache::PatternCache;
use crate::types::Type;

/// Functions, types and macros of a set of libraries, with a cache of compiled regular expressions. Share one by
/// [`Arc`] among all environments that need the same set.
#[derive(Clone, Debug)]
pub struct Language {
    functions: HashMap<Cow<'static, str>, DeclaredFunction>,
    types: HashMap<&'static str, Type>,
    macros: Vec<&'static Macro>,
    uniform: bool,
    #[cfg(feature = "regex")]
    patterns: PatternCache,
}

/// A function with the names of each overload's type parameters.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredFunction {
    pub name: Cow<'static, str>,
    pub overloads: Vec<Arc<Overload>>,
    pub parameters: Vec<Vec<Arc<str>>>,
}

/// Error: a function has two overloads with the same parameters, so that one of them would never be called.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("overload {added} of function {function} has the same parameters as {existing}")]
pub struct OverloadCollision {
    /// The function's name.
    pub function: String,
    /// Id of the overload that is declared already.
    pub existing: String,
    /// Id of the overload that was added.
    pub added: String,
}

impl Language {
    /// Returns the standard functions and macros of CEL, without any library.
    #[must_use]
    pub fn standard() -> Self {
        Self::of([library::standard()], false)
    }

    /// Returns all libraries that the enabled features provide.
    #[must_use]
    pub fn with_all_libraries() -> Self {
        let mut all = Self::of(library::all(), false);
        all.macros.push(&EXISTS_ONE);
        all
    }

    /// Creates a language from libraries. With `uniform`, list and map literals must contain values of one type.
    pub(crate) fn of(libraries: impl IntoIterator<Item = Library>, uniform: bool) -> Self {
        let mut language = Self {
            functions: HashMap::new(),
            types: HashMap::new(),
            macros: Vec::new(),
            uniform,
            #[cfg(feature = "regex")]
            patterns: PatternCache::new(),
        };
        for library in libraries {
            language.types.extend(library.types);
            language.macros.extend(library.macros);
            for Function { name, overloads } in library.functions {
                let declared = language.declared_function(name);
                overloads.into_iter().for_each(|overload| declared.push(overload));
            }
        }
        language
    }

    /// Replaces the cache of regular expressions, which programs of this language and of its clones share.
    #[cfg(feature = "regex")]
    #[must_use]
    pub fn with_pattern_cache(self, patterns: PatternCache) -> Self {
        Self { patterns, ..self }
    }

    /// Returns the cache of regular expressions.
    #[cfg(feature = "regex")]
    #[must_use]
    pub fn pattern_cache(&self) -> &PatternCache {
        &self.patterns
    }

    /// Adds a library's functions, types and macros.
    ///
    /// # Errors
    /// An overload has the parameters of an overload that is declared already.
    pub fn add(&mut self, library: Library) -> Result<(), OverloadCollision> {
        self.types.extend(library.types);
        self.macros.extend(library.macros);
        library.functions.into_iter().try_for_each(|function| self.add_function(function))
    }

    /// Adds a function, or overloads to one that is declared already.
    ///
    /// # Errors
    /// See [`Language::add`].
    pub fn add_function(&mut self, function: Function) -> Result<(), OverloadCollision> {
        let Function { name, overloads } = function;
        let declared = self.declared_function(name);
        for overload in overloads {
            if let Some(existing) = declared.overloads.iter().find(|existing| existing.collides(&overload)) {
                return Err(OverloadCollision {
                    function: declared.name.to_string(),
                    existing: existing.id.to_string(),
                    added: overload.id.to_string(),
                });
            }
            declared.push(overload);
        }
        Ok(())
    }

    fn declared_function(&mut self, name: Cow<'static, str>) -> &mut DeclaredFunction {
        self.functions.entry(name.clone()).or_insert_with(|| DeclaredFunction {
            name,
            overloads: Vec::new(),
            parameters: Vec::new(),
        })
    }

    pub(crate) fn function(&self, name: &str) -> Option<&DeclaredFunction> {
        self.functions.get(name.strip_prefix('.').unwrap_or(name))
    }

    pub(crate) fn named_type(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    pub(crate) fn macros(&self) -> &[&'static Macro] {
        &self.macros
    }

    /// True if list and map literals must have items of one type.
    pub(crate) fn is_uniform(&self) -> bool {
        self.uniform
    }
}

impl DeclaredFunction {
    fn push(&mut self, overload: Overload) {
        self.parameters.push(overload.type_parameters());
        self.overloads.push(Arc::new(overload));
    }
}
