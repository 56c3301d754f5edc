//! What can be a key of a work queue.

use std::fmt::Debug;
use std::hash::Hash;

/// What a key must be.
pub trait Key: Eq + Hash + Clone + Debug + Send + Sync + 'static {}

impl<T: Eq + Hash + Clone + Debug + Send + Sync + 'static> Key for T {}
