//! Resolution of overloads.

use super::{Checker, Reference};
use crate::ast::{Expr, Id, operator};
use crate::function::Overload;
use crate::language::DeclaredFunction;
use crate::types::Type;

impl<'e> Checker<'e> {
    /// Finds the overloads that accept these arguments. Returns their result type, or `dyn` if they differ.
    pub(super) fn resolve(
        &mut self,
        id: Id,
        declared: &'e DeclaredFunction,
        target: Option<&Expr>,
        arguments: &[Expr],
    ) -> Type {
        let types: Vec<Type> =
            target.into_iter().chain(arguments).map(|argument| self.type_of(argument)).collect();
        let name = &*declared.name;
        if name == operator::AND || name == operator::OR {
            return self.resolve_logic(id, arguments, &types);
        }
        let (mut found, mut result): (Vec<usize>, Option<Type>) = (Vec::new(), None);
        for (index, overload) in declared.overloads.iter().enumerate() {
            if overload.receiver != target.is_some() || overload.parameters.len() != types.len() {
                continue;
            }
            let (parameters, returned) = self.instantiate(overload, &declared.parameters[index]);
            if !self.mapping.all_assignable(&types, &parameters) {
                continue;
            }
            found.push(index);
            let returned = self.mapping.substitute(&returned, false);
            result = Some(match result {
                None => returned,
                Some(first) if first.is_dyn() || first == returned => first,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            self.no_overload(id, name, &types, target.is_some());
            return Type::Error;
        };
        self.references[id] = Reference::Overloads(found);
        result
    }

    fn resolve_logic(&mut self, id: Id, arguments: &[Expr], types: &[Type]) -> Type {
        let mut fits = true;
        for (argument, ty) in arguments.iter().zip(types) {
            if !self.mapping.assignable(ty, &Type::Bool) {
                self.mismatch(argument.id, &Type::Bool, ty);
                fits = false;
            }
        }
        if !fits {
            return Type::Error;
        }
        self.references[id] = Reference::Overloads(vec![0]);
        Type::Bool
    }

    /// Returns the types of an overload with fresh variables for this call.
    fn instantiate(&mut self, overload: &Overload, names: &[std::sync::Arc<str>]) -> (Vec<Type>, Type) {
        if names.is_empty() {
            return (overload.parameters.clone(), overload.result.clone());
        }
        let fresh: Vec<Type> = names.iter().map(|_| self.mapping.fresh_variable()).collect();
        let replace = |ty: &Type| with_fresh(ty, names, &fresh);
        (overload.parameters.iter().map(replace).collect(), replace(&overload.result))
    }

    fn no_overload(&mut self, id: Id, name: &str, types: &[Type], member: bool) {
        let spelled: Vec<String> =
            types.iter().map(|ty| self.mapping.substitute(ty, true).to_string()).collect();
        let signature = match spelled.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", spelled.join(", ")),
        };
        self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
    }
}

fn with_fresh(ty: &Type, names: &[std::sync::Arc<str>], fresh: &[Type]) -> Type {
    let replace = |ty: &Type| with_fresh(ty, names, fresh);
    match ty {
        Type::Param(name) => names
            .iter()
            .position(|other| other == name)
            .map_or_else(|| ty.clone(), |index| fresh[index].clone()),
        Type::List(items) => Type::list(replace(items)),
        Type::Map(entry) => Type::map(replace(&entry.0), replace(&entry.1)),
        Type::Type(Some(of)) => Type::type_of(replace(of)),
        Type::Opaque(name, of) => Type::Opaque(name.clone(), of.iter().map(replace).collect()),
        other => other.clone(),
    }
}
