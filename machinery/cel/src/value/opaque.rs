//! Values of libraries: what the core must know of them.

use std::any::Any;
use std::fmt::Debug;

use crate::types::Type;

/// A library's value, such as an IP address.
pub trait Opaque: Any + Debug + Send + Sync {
    /// Its type: [`Type::Object`] or [`Type::Opaque`] by name.
    fn type_of(&self) -> Type;

    /// Whether it equals another library's value; None for what it cannot be compared with.
    fn equals(&self, other: &dyn Opaque) -> Option<bool>;

    /// How Go prints what it is made of, with the type: `(netip.Addr)10.0.0.1`.
    fn native(&self) -> String;

    /// Its size as costs count it (bytes of an address); None counts as 1.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Bytes that it keeps, which its functions and comparisons read; 0 where they are few.
    fn bytes(&self) -> usize {
        0
    }

    /// For downcasts: `self`.
    fn as_any(&self) -> &dyn Any;
}
