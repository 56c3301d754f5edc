//! Declarations of libraries.

use crate::function::Function;
use crate::macros::Macro;
use crate::types::Type;

/// Functions, types and macros under one name.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Name of the library.
    pub name: &'static str,
    /// Functions of the library.
    pub functions: Vec<Function>,
    /// Types that expressions can refer to by name: `net.IP`.
    pub types: Vec<(&'static str, Type)>,
    /// Macros of the library.
    pub(crate) macros: Vec<&'static Macro>,
}

impl Library {
    /// Returns a library with these functions.
    #[must_use]
    pub fn new(name: &'static str, functions: Vec<Function>) -> Self {
        Self { name, functions, ..Self::default() }
    }

    /// Sets the types that expressions can refer to by name.
    #[must_use]
    pub fn with_types(self, types: Vec<(&'static str, Type)>) -> Self {
        Self { types, ..self }
    }

    /// Declares all functions pure: see [`Overload::pure`](crate::function::Overload::pure).
    #[must_use]
    pub fn pure(mut self) -> Self {
        for overload in self.functions.iter_mut().flat_map(|function| &mut function.overloads) {
            overload.pure = true;
        }
        self
    }

    pub(super) fn with_macros(self, macros: &'static [Macro]) -> Self {
        Self { macros: macros.iter().collect(), ..self }
    }
}
