//! One schema engine for built-in kinds and custom resources, without IO.
