//! Type checker with cel-go's algorithm: finds the type of each node, and the possible overloads of each call.

mod literals;
mod mapping;
mod names;
mod overloads;
mod qualified;

use std::sync::Arc;

use crate::ast::{Comprehension, Expr, ExprKind, Id, operator};
use crate::diagnostics::Issue;
use crate::environment::Environment;
use crate::language::Language;
use crate::parse::Parsed;
use crate::types::{ObjectTypes, Type};
use crate::value::Value;
use mapping::Mapping;

/// Checked tree with types and references.
#[derive(Debug)]
pub struct CheckedAst {
    /// Tree with resolved qualified names.
    pub expr: Expr,
    /// Byte offsets by id.
    pub offsets: Vec<usize>,
    /// Types by id.
    pub types: Vec<Type>,
    /// Meaning of names and calls, by id.
    pub references: Vec<Reference>,
    pub(crate) language: Arc<Language>,
}

/// Target of a name or call.
#[derive(Clone, Debug, Default)]
pub enum Reference {
    /// No target.
    #[default]
    None,
    /// A variable, of the environment or of a comprehension.
    Variable,
    /// The name of a type.
    Type(Type),
    /// Call: indices of the possible overloads.
    Overloads(Vec<usize>),
}

/// Checks a tree.
///
/// # Errors
/// All type errors.
pub(crate) fn check(environment: &Environment, parsed: Parsed) -> Result<CheckedAst, Vec<Issue>> {
    let Environment { language, variables, objects, .. } = environment;
    let Parsed { mut expr, offsets } = parsed;
    let mut checker = Checker {
        language,
        objects: objects.as_deref(),
        scopes: variables.iter().map(|v| (v.name.clone(), v.ty.clone())).collect(),
        types: vec![Type::Error; offsets.len()],
        references: vec![Reference::None; offsets.len()],
        offsets: &offsets,
        mapping: Mapping::default(),
        issues: Vec::new(),
    };
    checker.check(&mut expr);
    let Checker { mut types, references, mut mapping, mut issues, .. } = checker;
    for ty in &mut types {
        *ty = mapping.substitute(ty, true);
    }
    if mapping.is_exhausted() {
        issues.push(Issue::without_position("types of the expression are too complex"));
    }
    if issues.is_empty() {
        Ok(CheckedAst { expr, offsets, types, references, language: Arc::clone(language) })
    } else {
        Err(issues)
    }
}

impl CheckedAst {
    /// Returns the type of the whole expression.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        self.type_of(&self.expr)
    }

    /// Returns the type of a node.
    #[must_use]
    pub fn type_of(&self, expr: &Expr) -> &Type {
        self.types.get(expr.id).unwrap_or(&Type::Error)
    }

    pub(crate) fn reference(&self, expr: &Expr) -> &Reference {
        self.references.get(expr.id).unwrap_or(&Reference::None)
    }
}

struct Checker<'e> {
    language: &'e Language,
    objects: Option<&'e dyn ObjectTypes>,
    scopes: Vec<(Arc<str>, Type)>,
    types: Vec<Type>,
    references: Vec<Reference>,
    offsets: &'e [usize],
    mapping: Mapping,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ty = match &mut expr.kind {
            ExprKind::Literal(value) => literal_type(value),
            ExprKind::Ident(_) => self.ident(expr),
            ExprKind::Select { .. } => self.select(expr),
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::List(items) => self.list(items),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { name, fields } => self.object(id, name, fields),
            ExprKind::Comprehension(fold) => self.comprehension(fold),
            ExprKind::Broken => Type::Error,
        };
        self.types[id] = ty;
    }

    fn type_of(&self, expr: &Expr) -> Type {
        self.types[expr.id].clone()
    }

    fn report(&mut self, id: Id, message: String) {
        self.issues.push(Issue::at(self.offsets[id], message));
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn report_undeclared(&mut self, id: Id, name: &str) -> Type {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn assert_type(&mut self, expr: &Expr, expected: &Type) {
        let found = self.type_of(expr);
        if !self.mapping.assignable(expected, &found) {
            self.mismatch(expr.id, expected, &found);
        }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let ExprKind::Call { function, target, arguments } = &mut expr.kind else { return Type::Error };
        if &**function == operator::OPTIONAL_FIELD {
            return self.optional_select(id, arguments);
        }
        for argument in arguments.iter_mut() {
            self.check(argument);
        }
        let Some(receiver) = target else {
            let Some(declared) = self.language.function(function) else {
                let name = function.clone();
                return self.report_undeclared(id, &name);
            };
            return self.resolve(id, declared, None, arguments);
        };
        if let Some(prefix) = qualified::qualified_name(receiver)
            && let Some(declared) = self.language.function(&format!("{prefix}.{function}"))
        {
            *function = Arc::from(&*declared.name);
            *target = None;
            return self.resolve(id, declared, None, arguments);
        }
        self.check(receiver);
        match self.language.function(function) {
            Some(declared) => self.resolve(id, declared, Some(receiver), arguments),
            None => {
                let name = function.clone();
                self.report_undeclared(id, &name)
            }
        }
    }

    fn comprehension(&mut self, fold: &mut Comprehension) -> Type {
        self.check(&mut fold.range);
        self.check(&mut fold.start);
        let range_type = self.type_of(&fold.range);
        let range = self.mapping.substitute(&range_type, false);
        let accumulated = self.type_of(&fold.start);
        let outer = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), accumulated.clone()));
        let (first, second) = self.iteration_types(fold, &range);
        let inner = self.scopes.len();
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second {
            self.scopes.push((name.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert_type(&fold.condition, &Type::Bool);
        self.check(&mut fold.step);
        self.assert_type(&fold.step, &accumulated);
        self.scopes.truncate(inner);
        self.check(&mut fold.result);
        self.scopes.truncate(outer);
        let result = self.type_of(&fold.result);
        self.mapping.substitute(&result, false)
    }

    /// Returns the types of a comprehension's variables.
    fn iteration_types(&mut self, fold: &Comprehension, range: &Type) -> (Type, Type) {
        let two = fold.second.is_some();
        match range {
            Type::List(items) if two => (Type::Int, (**items).clone()),
            Type::List(items) => ((**items).clone(), Type::Dyn),
            Type::Map(entry) => entry.as_ref().clone(),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        }
    }
}

fn literal_type(value: &Value<'_>) -> Type {
    value.type_of()
}

#[cfg(feature = "kubernetes")]
#[cfg(test)]
mod tests;
