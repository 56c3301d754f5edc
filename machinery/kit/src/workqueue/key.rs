//! Keys of work queues.

use std::fmt::Debug;
use std::hash::Hash;

/// Bounds of a key of a work queue.
pub trait Key: Eq + Hash + Clone + Debug + Send + Sync + 'static {}

impl<T: Eq + Hash + Clone + Debug + Send + Sync + 'static> Key for T {}
