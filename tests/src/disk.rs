//! A disk that fails, fills up, and loses power; and a clock that steps. For processes that a test starts.

mod power;
mod shim;

pub use power::lose_power;
pub use shim::{Shim, ShimCounts};

/// Error of the simulation, printed in one line.
type Failure = Box<dyn std::error::Error + Send + Sync>;
