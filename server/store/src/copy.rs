//! Copies between all engines: portable backups, and migration from one database to another.
//!
//! A [`CopySource`] returns stored values unchanged: sealed values stay sealed. A [`CopyTarget`] receives them. Each
//! engine implements both, and a running control service is a source as well. Independent of SQL.

mod archive;
mod backup;
mod block;
mod engine;
mod error;
mod file;
mod migrate;
mod partial;
mod restore;
mod revision_allocator;
mod state;
mod store_extent;

pub use archive::{ArchiveContents, ArchiveCursor, ArchivePart, ArchivedState, RevisionGap, TimeMark};
pub use backup::{Backup, BackupSummary, back_up};
pub use block::FormatError;
pub use engine::{Changes, CopySource, CopyTarget, FinishedCopy, WriteSwitch};
pub(crate) use engine::{PAGE_BYTES, PAGE_MARKS, PAGE_STATES, page_end, page_length};
pub use error::CopyError;
pub use file::{BackupCounts, BackupFile, BackupPart, Header, check};
pub use migrate::{Migration, MigrationStep, MigrationSummary, migrate};
pub use restore::{RestoreOptions, RestoreSummary, restore_from};
pub use state::StoredState;
pub use store_extent::StoreExtent;
