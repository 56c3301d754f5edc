//! Interface of values of libraries.

use std::any::Any;
use std::fmt::Debug;

use crate::types::Type;

/// A value of a library, such as an IP address.
pub trait Opaque: Any + Debug + Send + Sync {
    /// Returns the type: a [`Type::Object`] or [`Type::Opaque`].
    fn type_of(&self) -> Type;

    /// Compares two values; `None` if they are not comparable.
    fn equals(&self, other: &dyn Opaque) -> Option<bool>;

    /// Returns Go's `(type)value` form for messages: `(netip.Addr)10.0.0.1`.
    fn native(&self) -> String;

    /// Returns the size for costs, such as the bytes of an address. `None` means 1.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes that functions and comparisons read; 0 for small values.
    fn bytes(&self) -> usize {
        0
    }

    /// Returns `self`, for downcasts.
    fn as_any(&self) -> &dyn Any;
}
