//! Keeps promises: reconcilers that use the same door as users.
