//! Lists: computed ones, and arrays of somebody's JSON.

use std::sync::Arc;

#[cfg(feature = "json")]
use super::json::{dynamic, from_json, redeclared};
use super::{List, Value};
use crate::decl::{DeclType, ListKind};
use crate::error::EvalError;

impl<'v> List<'v> {
    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Computed { items, .. } => items.len(),
            #[cfg(feature = "json")]
            Self::Json { array, .. } => array.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at an index; None behind the end.
    pub fn get(&self, index: usize) -> Option<Result<Value<'v>, EvalError>> {
        match self {
            Self::Computed { items, of } => {
                let item = items.get(index)?.clone();
                Some(match of {
                    #[cfg(feature = "json")]
                    Some(of) => redeclared(item, of.items()),
                    _ => Ok(item),
                })
            }
            #[cfg(feature = "json")]
            Self::Json { array, of } => array.get(index).map(|json| from_json(json, of.items())),
        }
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'v>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All items at once.
    ///
    /// # Errors
    /// Of the first item that does not fit its declaration.
    pub fn to_vec(&self) -> Result<Vec<Value<'v>>, EvalError> {
        match self {
            Self::Computed { items, of: None } => Ok(items.to_vec()),
            _ => self.iter().collect(),
        }
    }

    /// The same without its declaration.
    pub(super) fn erased(&self) -> Self {
        match self {
            Self::Computed { items, .. } => Self::Computed { items: items.clone(), of: None },
            #[cfg(feature = "json")]
            Self::Json { array, .. } => Self::Json { array, of: DeclType::dynamic() },
        }
    }

    /// What upstream's lists are called in Go.
    pub(super) fn go_type(&self) -> &'static str {
        match self {
            #[cfg(feature = "json")]
            Self::Json { of, .. } if !of.is_known() => "[]interface {}",
            Self::Computed { of: None, .. } => "*types.baseList",
            _ => match self.kind() {
                ListKind::Atomic => "*common.unstructuredList",
                ListKind::Set => "*common.unstructuredSetList",
                ListKind::Map(_) => "*common.unstructuredMapList",
            },
        }
    }

    /// All items as plain data: what a list keeps that is added to.
    pub(crate) fn plain(&self) -> Vec<Value<'v>> {
        match self {
            Self::Computed { items, .. } => items.to_vec(),
            #[cfg(feature = "json")]
            Self::Json { array, .. } => array.iter().map(dynamic).collect(),
        }
    }

    /// What kind of list the schema says it is: sets and maps are equal in any order.
    #[must_use]
    pub fn kind(&self) -> &'v ListKind {
        match self {
            Self::Computed { of: None, .. } => &ListKind::Atomic,
            Self::Computed { of: Some(of), .. } => of.list_kind(),
            #[cfg(feature = "json")]
            Self::Json { of, .. } => of.list_kind(),
        }
    }

    /// The declaration that it stems from.
    #[must_use]
    pub fn declared(&self) -> Option<&'v DeclType> {
        match self {
            Self::Computed { of, .. } => *of,
            #[cfg(feature = "json")]
            Self::Json { of, .. } => Some(of),
        }
    }
}

impl<'v> From<Vec<Value<'v>>> for List<'v> {
    fn from(items: Vec<Value<'v>>) -> Self {
        Self::Computed { items: Arc::new(items), of: None }
    }
}
