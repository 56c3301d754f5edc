//! Keys of work queues.

use std::fmt::Debug;
use std::hash::Hash;

/// Bounds of a key of a work queue.
pub trait WorkKey: Eq + Hash + Clone + Debug + Send + Sync + 'static {}

impl<T: Eq + Hash + Clone + Debug + Send + Sync + 'static> WorkKey for T {}
