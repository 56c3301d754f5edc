//! Copies between all engines: portable backups, and migration from one database to another.
//!
//! A [`CopySource`] returns stored values unchanged: sealed values stay sealed. A [`CopyTarget`] receives them. Each
//! engine implements both, and a running control service is a source as well. Independent of SQL.

mod archive;
mod backup;
mod block;
mod distinct;
mod engine;
mod error;
mod extent;
mod file;
mod migrate;
mod partial;
mod restore;
mod state;

pub use archive::{ArchiveAt, ArchivePart, ArchivedState, Kept, Lost, TimeMark};
pub use backup::{Backup, BackupDone, back_up};
pub use block::FormatError;
pub use engine::{Changes, CopySource, CopyTarget, Finished, WriteSwitch};
pub(crate) use engine::{PAGE_BYTES, PAGE_MARKS, PAGE_STATES, page_of, part_of};
pub use error::CopyError;
pub use extent::Extent;
pub use file::{BackupFile, BackupPart, Counts, Header, check};
pub use migrate::{Migrated, Migration, MigrationStep, migrate};
pub use restore::{RestoredFrom, Restoring, restore_from};
pub use state::StoredState;
