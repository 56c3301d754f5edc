//! Languages: the functions, types and macros that expressions of many environments share.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::function::{Function, Overload};
use crate::library::{self, Library};
use crate::macros::{EXISTS_ONE, Macro};
use crate::types::Type;

/// Functions, types and macros of a set of libraries. Immutable, and shared by all environments of that set.
#[derive(Clone, Debug)]
pub struct Language {
    functions: HashMap<Cow<'static, str>, Declared>,
    types: HashMap<&'static str, Type>,
    macros: Vec<&'static Macro>,
    uniform: bool,
}

/// A function with the names of each overload's type parameters.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub name: Cow<'static, str>,
    pub overloads: Vec<Arc<Overload>>,
    pub parameters: Vec<Vec<Arc<str>>>,
}

/// A function has two overloads that take the same values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("overload {added} of function {function} takes what {known} takes")]
pub struct OverloadCollision {
    /// The function's name.
    pub function: String,
    /// Id of the overload that is declared.
    pub known: String,
    /// Id of the overload that was added.
    pub added: String,
}

impl Language {
    /// The language's own functions and macros, without any library.
    #[must_use]
    pub fn standard() -> Self {
        Self::of([library::standard()], false)
    }

    /// All that this crate offers with its enabled features, `cel.bind` included.
    #[must_use]
    pub fn everything() -> Arc<Self> {
        let mut all = Self::of(library::all(), false);
        all.macros.push(&EXISTS_ONE);
        Arc::new(all)
    }

    /// A set of libraries; `uniform` says that lists and maps that are written out hold items of one type.
    pub(crate) fn of(libraries: impl IntoIterator<Item = Library>, uniform: bool) -> Self {
        let mut language =
            Self { functions: HashMap::new(), types: HashMap::new(), macros: Vec::new(), uniform };
        for library in libraries {
            language.types.extend(library.types);
            language.macros.extend(library.macros);
            for Function { name, overloads } in library.functions {
                let declared = language.declared(name);
                overloads.into_iter().for_each(|overload| declared.push(overload));
            }
        }
        language
    }

    /// Adds a library's functions, types and macros.
    ///
    /// # Errors
    /// An overload takes what another of its function takes, so that it would never be called.
    pub fn add(&mut self, library: Library) -> Result<(), OverloadCollision> {
        self.types.extend(library.types);
        self.macros.extend(library.macros);
        library.functions.into_iter().try_for_each(|function| self.add_function(function))
    }

    /// Adds a function, or overloads to one that is declared already.
    ///
    /// # Errors
    /// As [`Language::add`].
    pub fn add_function(&mut self, function: Function) -> Result<(), OverloadCollision> {
        let Function { name, overloads } = function;
        let declared = self.declared(name);
        for overload in overloads {
            if let Some(known) = declared.overloads.iter().find(|known| known.collides(&overload)) {
                return Err(OverloadCollision {
                    function: declared.name.to_string(),
                    known: known.id.to_string(),
                    added: overload.id.to_string(),
                });
            }
            declared.push(overload);
        }
        Ok(())
    }

    fn declared(&mut self, name: Cow<'static, str>) -> &mut Declared {
        self.functions.entry(name.clone()).or_insert_with(|| Declared {
            name,
            overloads: Vec::new(),
            parameters: Vec::new(),
        })
    }

    pub(crate) fn function(&self, name: &str) -> Option<&Declared> {
        self.functions.get(name.strip_prefix('.').unwrap_or(name))
    }

    pub(crate) fn named_type(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    pub(crate) fn macros(&self) -> &[&'static Macro] {
        &self.macros
    }

    /// Whether lists and maps that are written out hold items of one type.
    pub(crate) fn is_uniform(&self) -> bool {
        self.uniform
    }
}

impl Declared {
    fn push(&mut self, overload: Overload) {
        self.parameters.push(overload.type_parameters());
        self.overloads.push(Arc::new(overload));
    }
}
