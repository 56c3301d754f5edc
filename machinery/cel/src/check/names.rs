//! Names: variables, types, qualified functions, and fields.

use std::sync::Arc;

use super::qualified::qualified_name;
use super::{Checker, Reference};
use crate::ast::{Expr, ExprKind, Id};
use crate::types::Type;
use crate::value::Value;

impl Checker<'_> {
    /// Looks up the meaning of a name.
    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, ty)) = self.scopes.iter().rev().find(|(declared, _)| **declared == *name) {
            return Some((ty.clone(), Reference::Variable));
        }
        let named = self.language.named_type(name)?.clone();
        Some((Type::type_of(named.clone()), Reference::Type(named)))
    }

    pub(super) fn ident(&mut self, expr: &mut Expr) -> Type {
        let ExprKind::Ident(name) = &mut expr.kind else { return Type::Error };
        if let Some((ty, reference)) = self.lookup(name) {
            if let Some(plain) = name.strip_prefix('.') {
                *name = Arc::from(plain);
            }
            self.references[expr.id] = reference;
            return ty;
        }
        let name = name.clone();
        self.report_undeclared(expr.id, &name)
    }

    pub(super) fn select(&mut self, expr: &mut Expr) -> Type {
        // The dotted name of a type, such as `net.IP`; variables have no dots.
        if let Some(name) = qualified_name(expr)
            && let Some((ty, reference)) = self.lookup(&name)
        {
            self.references[expr.id] = reference;
            expr.kind = ExprKind::Ident(Arc::from(name));
            return ty;
        }
        let id = expr.id;
        let ExprKind::Select { operand, field, test } = &mut expr.kind else { return Type::Error };
        let (field, test) = (field.clone(), *test);
        let ty = self.field(id, operand, &field, false);
        if test { Type::Bool } else { self.mapping.substitute(&ty, false) }
    }

    pub(super) fn optional_select(&mut self, id: Id, arguments: &mut [Expr]) -> Type {
        let [operand, name] = arguments else { return Type::Error };
        let ExprKind::Literal(Value::String(field)) = &name.kind else { return Type::Error };
        let field = field.clone();
        self.types[name.id] = Type::String;
        let ty = self.field(id, operand, &field, true);
        self.references[id] = Reference::Overloads(Vec::new());
        self.mapping.substitute(&ty, false)
    }

    fn field(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand = self.type_of(operand);
        let operand = self.mapping.substitute(&operand, false);
        let inner = operand.optional_of();
        let ty = self.field_of(id, inner.unwrap_or(&operand), field);
        if inner.is_some() || optional { Type::optional(ty) } else { ty }
    }

    fn field_of(&mut self, id: Id, of: &Type, field: &str) -> Type {
        match of {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(object) => match object.field_type(field) {
                Some(found) => found,
                // Types of libraries have no known fields.
                None if object.is_of_library() => {
                    self.report(id, format!("unexpected failed resolution of '{}'", object.name));
                    Type::Error
                }
                None => {
                    self.report(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            // Types of libraries have no known fields.
            Type::Opaque(name, of) if of.is_empty() => {
                self.report(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Param(_) => {
                self.mapping.assignable(&Type::Dyn, of);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.report(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        }
    }
}
