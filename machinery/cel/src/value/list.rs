//! Lists: computed, or borrowed from JSON.

use std::sync::Arc;

#[cfg(feature = "json")]
use super::json::{dynamic, from_json, with_declaration};
use super::{List, Value};
use crate::decl::{DeclType, ListKind};
use crate::error::EvalError;

impl<'v> List<'v> {
    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Computed { items, .. } => items.len(),
            #[cfg(feature = "json")]
            Self::Json { array, .. } => array.len(),
        }
    }

    /// True if the list has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at an index; `None` if the list is shorter, an error if the item does not match its declaration.
    pub fn get(&self, index: usize) -> Option<Result<Value<'v>, EvalError>> {
        match self {
            Self::Computed { items, of } => {
                let item = items.get(index)?.clone();
                Some(match of {
                    #[cfg(feature = "json")]
                    Some(of) => with_declaration(item, of.items()),
                    _ => Ok(item),
                })
            }
            #[cfg(feature = "json")]
            Self::Json { array, of } => array.get(index).map(|json| from_json(json, of.items())),
        }
    }

    /// Iterates over the items; an item is an error if it does not match its declaration.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'v>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Collects all items.
    ///
    /// # Errors
    /// An item does not match its declaration.
    pub fn to_vec(&self) -> Result<Vec<Value<'v>>, EvalError> {
        match self {
            Self::Computed { items, of: None } => Ok(items.to_vec()),
            _ => self.iter().collect(),
        }
    }

    /// Returns the list without its declaration.
    pub(super) fn without_declaration(&self) -> Self {
        match self {
            Self::Computed { items, .. } => Self::Computed { items: items.clone(), of: None },
            #[cfg(feature = "json")]
            Self::Json { array, .. } => Self::Json { array, of: DeclType::dynamic() },
        }
    }

    /// Returns the name of the Go type, for messages.
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

    /// Returns all items without declarations.
    pub(crate) fn plain(&self) -> Vec<Value<'v>> {
        match self {
            Self::Computed { items, .. } => items.to_vec(),
            #[cfg(feature = "json")]
            Self::Json { array, .. } => array.iter().map(dynamic).collect(),
        }
    }

    /// Returns the equality of the list by its declaration.
    #[must_use]
    pub fn kind(&self) -> &'v ListKind {
        match self {
            Self::Computed { of: None, .. } => &ListKind::Atomic,
            Self::Computed { of: Some(of), .. } => of.list_kind(),
            #[cfg(feature = "json")]
            Self::Json { of, .. } => of.list_kind(),
        }
    }

    /// Returns the declaration of the list, if it has one.
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
