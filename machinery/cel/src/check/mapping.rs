//! Types assigned to the type variables of an expression.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::Type;

/// Maximum number of parts of an expanded type. The work of checking grows with it.
const MAX_PARTS: usize = 1_000;

/// Substitutions of type variables, with a journal to roll back failed attempts.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    substitutions: HashMap<Arc<str>, Type>,
    journal: Vec<(Arc<str>, Option<Type>)>,
    variables: usize,
    exhausted: bool,
}

impl Mapping {
    /// Returns a new free variable.
    pub fn fresh_variable(&mut self) -> Type {
        self.variables += 1;
        Type::param(&format!("_var{}", self.variables - 1))
    }

    /// True if a type exceeded the limit.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// True if a value of type `two` is assignable to `one`. Assigns variables; leaves them unchanged if the result is false.
    pub fn assignable(&mut self, one: &Type, two: &Type) -> bool {
        self.attempt(|mapping| mapping.assign(one, two))
    }

    /// Assigns lists of types of the same length.
    pub fn all_assignable(&mut self, ones: &[Type], twos: &[Type]) -> bool {
        ones.len() == twos.len()
            && self.attempt(|mapping| ones.iter().zip(twos).all(|(a, b)| mapping.assign(a, b)))
    }

    fn attempt(&mut self, test: impl FnOnce(&mut Self) -> bool) -> bool {
        let start = self.journal.len();
        let fits = test(self);
        if !fits {
            while self.journal.len() > start {
                match self.journal.pop() {
                    Some((name, Some(before))) => self.substitutions.insert(name, before),
                    Some((name, None)) => self.substitutions.remove(&name),
                    None => None,
                };
            }
        } else if start == 0 {
            self.journal.clear();
        }
        fits
    }

    fn set(&mut self, name: &Arc<str>, ty: Type) {
        let before = self.substitutions.insert(name.clone(), ty);
        self.journal.push((name.clone(), before));
    }

    fn assign(&mut self, one: &Type, two: &Type) -> bool {
        if let Type::Param(name) = two {
            let (valid, is_known) = self.is_valid_substitution(one, name, two);
            if valid || is_known {
                return valid;
            }
        }
        if let Type::Param(name) = one {
            return self.is_valid_substitution(two, name, one).0;
        }
        if one.is_dyn_or_error() || two.is_dyn_or_error() {
            return true;
        }
        match (one, two) {
            (Type::Null, other) | (other, Type::Null) => {
                matches!(
                    other,
                    Type::Null | Type::Object(_) | Type::Opaque(..) | Type::Timestamp | Type::Duration
                )
            }
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(one), Type::List(two)) => self.assign(one, two),
            (Type::Map(one), Type::Map(two)) => self.assign(&one.0, &two.0) && self.assign(&one.1, &two.1),
            (Type::Opaque(one, of), Type::Opaque(two, other)) => {
                one == two
                    && of.len() == other.len()
                    && of.iter().zip(&**other).all(|(a, b)| self.assign(a, b))
            }
            _ => one == two,
        }
    }

    /// True if a type can be assigned to a variable, which may have a type already.
    fn is_valid_substitution(&mut self, ty: &Type, name: &Arc<str>, variable: &Type) -> (bool, bool) {
        if ty == variable {
            return (true, true);
        }
        let Some(substitution) = self.substitutions.get(name).cloned() else {
            let free = self.is_free_of(variable, ty);
            if free {
                self.set(name, ty.clone());
            }
            return (free, false);
        };
        if *ty == substitution {
            return (true, true);
        }
        if !self.assign(ty, &substitution) {
            return (false, true);
        }
        let general = most_general(ty, &substitution);
        if self.is_free_of(variable, general) {
            let general = general.clone();
            self.set(name, general);
        }
        (true, true)
    }

    /// True if a variable does not occur in a type.
    fn is_free_of(&self, variable: &Type, ty: &Type) -> bool {
        if ty == variable {
            return false;
        }
        match ty {
            Type::Param(name) => self
                .substitutions
                .get(name)
                .is_none_or(|substitution| self.is_free_of(variable, substitution)),
            other => other.parameters().into_iter().all(|part| self.is_free_of(variable, part)),
        }
    }

    /// Replaces the variables in a type; free ones stay, or become `dyn`.
    pub fn substitute(&mut self, ty: &Type, free_to_dyn: bool) -> Type {
        let mut parts = MAX_PARTS;
        let substituted = self.replace(ty, free_to_dyn, &mut parts);
        self.exhausted |= parts == 0;
        substituted
    }

    fn replace(&self, ty: &Type, free_to_dyn: bool, parts: &mut usize) -> Type {
        if *parts == 0 {
            return Type::Dyn;
        }
        *parts -= 1;
        match ty {
            Type::Param(name) => match self.substitutions.get(name) {
                Some(substitution) => self.replace(substitution, free_to_dyn, parts),
                None if free_to_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(items) => Type::list(self.replace(items, free_to_dyn, parts)),
            Type::Map(entry) => {
                let keys = self.replace(&entry.0, free_to_dyn, parts);
                Type::map(keys, self.replace(&entry.1, free_to_dyn, parts))
            }
            Type::Type(Some(of)) => Type::type_of(self.replace(of, free_to_dyn, parts)),
            Type::Opaque(name, of) => {
                let of = of.iter().map(|part| self.replace(part, free_to_dyn, parts)).collect();
                Type::Opaque(name.clone(), of)
            }
            other => other.clone(),
        }
    }
}

/// Returns the more general one of two compatible types.
pub(super) fn most_general<'t>(one: &'t Type, two: &'t Type) -> &'t Type {
    if is_more_general(one, two) { one } else { two }
}

fn is_more_general(one: &Type, two: &Type) -> bool {
    match (one, two) {
        (Type::Dyn | Type::Any | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Param(_)) => false,
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(one), Type::List(two)) => is_more_general(one, two),
        (Type::Map(one), Type::Map(two)) => {
            is_more_general(&one.0, &two.0) && is_more_general(&one.1, &two.1)
        }
        (Type::Opaque(one, of), Type::Opaque(two, other)) => {
            one == two
                && of.len() == other.len()
                && of.iter().zip(&**other).all(|(a, b)| is_more_general(a, b))
        }
        _ => one == two,
    }
}
