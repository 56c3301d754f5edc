//! What a library is.

use crate::function::Function;
use crate::macros::Macro;
use crate::types::Type;

/// A library.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Its name.
    pub name: &'static str,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Types that expressions may name: `net.IP`.
    pub types: Vec<(&'static str, Type)>,
    /// Its macros.
    pub macros: Vec<&'static Macro>,
}

impl Library {
    /// A library of these functions.
    #[must_use]
    pub fn new(name: &'static str, functions: Vec<Function>) -> Self {
        Self { name, functions, ..Self::default() }
    }

    /// The same with types that expressions may name.
    #[must_use]
    pub fn with_types(self, types: Vec<(&'static str, Type)>) -> Self {
        Self { types, ..self }
    }

    /// The same, its functions declared pure: see [`Overload::pure`](crate::function::Overload::pure).
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
