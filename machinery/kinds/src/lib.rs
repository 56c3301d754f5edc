//! Kinds as data: the embedded descriptions of built-in kinds and their loader.
//!
//! One data file per group (`data/*.yaml`) says everything that generic code must know of a kind; `data/groups.yaml` holds
//! the priorities of all group versions. A new kind is one edit of one of these files. A custom resource is the same
//! [`KindInfo`], made at run time.
//!
//! Must not know what any kind means: rules that data cannot say are strategies of the registry.

mod builtin;
mod choice;
mod column;
mod emulation;
mod error;
mod file;
mod group;
mod kind;
mod load;
mod ownership;
mod registry;
mod runtime_config;
mod storage;

pub use column::{CellRule, ColumnRule, Shown};
pub use error::LoadError;
pub use group::GroupVersionInfo;
pub use kind::{
    Deletion, Generation, KindInfo, NameRule, Orphaning, QueryParameter, StatusRule, Subresource,
};
pub use ownership::Ownership;
pub use registry::Kinds;
pub use runtime_config::{RuntimeConfig, RuntimeConfigError};
pub use storage::NoStorage;

#[cfg(test)]
mod apply_tests;

#[cfg(test)]
mod recorded_tests;

#[cfg(test)]
mod expiration_tests;

#[cfg(test)]
mod upstream_tests;
