//! What an expression may use: variables, functions, macros, types; and how it is compiled.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::function::Function;
use crate::library::{self, Library};
use crate::macros::{self, Macro};
use crate::source::print_issues;
use crate::{Overload, Program, Type, check, parse, plan, validators};

/// The release of Kubernetes (1.x) whose set new expressions may use.
///
/// Upstream compiles new and changed expressions in the set of the release before, so that they survive a rollback.
pub const NEW_EXPRESSIONS: u16 = 35;
/// The release whose set stored expressions may use.
pub const STORED_EXPRESSIONS: u16 = 36;

/// Functions, types and macros of one set of libraries. Immutable and shared by all environments of that set.
#[derive(Debug)]
pub struct Language {
    functions: HashMap<&'static str, Declared>,
    types: HashMap<&'static str, Type>,
    macros: Vec<&'static Macro>,
    /// Whether lists and maps that are written out hold items of one type.
    pub(crate) uniform: bool,
}

/// A function with the names of each overload's type parameters.
#[derive(Debug)]
pub(crate) struct Declared {
    pub name: &'static str,
    pub overloads: Vec<Arc<Overload>>,
    pub parameters: Vec<Vec<Arc<str>>>,
}

/// Why an expression does not compile, as messages show it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It does not parse, or its types do not fit.
    #[error("compilation failed: {0}")]
    Compilation(String),
    /// A constant part of it can never work.
    #[error("program instantiation failed: {0}")]
    Instantiation(String),
}

impl Language {
    /// What kube-apiserver 1.`minor` offers.
    #[must_use]
    pub fn of_release(minor: u16) -> Arc<Self> {
        static NEW: OnceLock<Arc<Language>> = OnceLock::new();
        static STORED: OnceLock<Arc<Language>> = OnceLock::new();
        let build = || {
            let libraries = library::libraries();
            let offered = libraries.into_iter().filter(|library| library.offered(minor));
            Arc::new(Self::build(offered.collect(), macros_of(minor), true))
        };
        match minor {
            NEW_EXPRESSIONS => NEW.get_or_init(build).clone(),
            STORED_EXPRESSIONS => STORED.get_or_init(build).clone(),
            _ => build(),
        }
    }

    /// The same with `cel.bind`, which expressions of few places may use.
    #[must_use]
    pub fn with_bindings(minor: u16) -> Arc<Self> {
        let offered = library::libraries().into_iter().filter(|library| library.offered(minor));
        let mut macros = macros_of(minor);
        macros.push(&macros::BIND);
        Arc::new(Self::build(offered.collect(), macros, true))
    }

    /// All that this crate knows, and all that the language allows: `cel.bind` and lists of mixed types, which no
    /// release of kube-apiserver offers.
    #[must_use]
    pub fn everything() -> Arc<Self> {
        let mut offered = macros_of(u16::MAX);
        offered.extend([&macros::BIND, &macros::EXISTS_ONE]);
        let libraries = library::libraries().into_iter().filter(|library| library.until.is_none());
        Arc::new(Self::build(libraries.collect(), offered, false))
    }

    fn build(libraries: Vec<Library>, macros: Vec<&'static Macro>, uniform: bool) -> Self {
        let mut functions: HashMap<&'static str, Declared> = HashMap::new();
        let mut types = HashMap::new();
        for library in std::iter::once(library::standard()).chain(libraries) {
            types.extend(library.types);
            for function in library.functions {
                declare(&mut functions, function);
            }
        }
        Self { functions, types, macros, uniform }
    }

    pub(crate) fn function(&self, name: &str) -> Option<&Declared> {
        self.functions.get(name.strip_prefix('.').unwrap_or(name))
    }

    pub(crate) fn named_type(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }
}

fn declare(functions: &mut HashMap<&'static str, Declared>, function: Function) {
    let name = function.name;
    let declared = functions.entry(name).or_insert_with(|| Declared {
        name,
        overloads: Vec::new(),
        parameters: Vec::new(),
    });
    for overload in function.overloads {
        declared.parameters.push(overload.type_parameters());
        declared.overloads.push(Arc::new(overload));
    }
}

fn macros_of(minor: u16) -> Vec<&'static Macro> {
    let mut offered: Vec<&'static Macro> = macros::STANDARD.iter().collect();
    if minor >= 28 {
        offered.extend(&macros::OPTIONALS);
    }
    if minor >= 32 {
        offered.extend(&macros::TWO_VARIABLES);
    }
    if minor >= 34 {
        offered.push(&macros::SORT_BY);
    }
    offered
}

/// A variable of an expression.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name: `self`.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
}

/// Variables over a language: what expressions of one place may say.
#[derive(Clone, Debug)]
pub struct Environment {
    pub(crate) language: Arc<Language>,
    pub(crate) variables: Vec<Variable>,
}

impl Environment {
    /// A language without variables.
    #[must_use]
    pub fn new(language: Arc<Language>) -> Self {
        Self { language, variables: Vec::new() }
    }

    /// The same with a variable more.
    #[must_use]
    pub fn with(mut self, name: &str, ty: Type) -> Self {
        self.variables.push(Variable { name: Arc::from(name), ty });
        self
    }

    /// Compiles an expression: parses, checks, validates literals, and plans its evaluation.
    ///
    /// # Errors
    /// All that is wrong with it, as cel-go prints it.
    pub fn compile(&self, text: &str) -> Result<Program, CompileError> {
        let refuse = |issues: Vec<_>| CompileError::Compilation(print_issues(text, &issues));
        let parsed = parse::parse(text, &self.language.macros).map_err(refuse)?;
        let checked = check::check(self, parsed).map_err(refuse)?;
        let issues = validators::validate(&checked);
        if !issues.is_empty() {
            return Err(refuse(issues));
        }
        let plan = plan::plan(self, &checked).map_err(CompileError::Instantiation)?;
        let names = self.variables.iter().map(|variable| variable.name.clone()).collect();
        Ok(Program::new(names, checked, plan))
    }
}
