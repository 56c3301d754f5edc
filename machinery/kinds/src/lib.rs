//! Kinds as data: the embedded descriptions of built-in kinds and their loader.
//!
//! Each group has a data file (`data/*.yaml`) with everything that generic code needs to know about its kinds.
//! `data/groups.yaml` contains the priorities of all group versions. A new kind is a change of one of these files. Custom
//! resources use the same [`KindInfo`], created at run time.
//!
//! This crate does not interpret kinds: rules that data cannot express are strategies of the registry.

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

pub use column::{CellRule, ColumnRule, ColumnType};
pub use error::LoadError;
pub use group::GroupVersionInfo;
pub use kind::{
    DefaultPropagation, DeletionRules, GenerationRule, KindInfo, NameRule, QueryParameter, StatusRule,
    Subresource,
};
pub use ownership::OwnershipFilters;
pub use registry::Kinds;
pub use runtime_config::{RuntimeConfig, RuntimeConfigError};
pub use storage::StorageNameError;

#[cfg(test)]
mod apply_tests;

#[cfg(test)]
mod recorded_tests;

#[cfg(test)]
mod expiration_tests;

#[cfg(test)]
mod upstream_tests;
