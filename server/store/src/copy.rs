//! Copies of a store that every engine can read and write: portable backups, and the way from one database to another.
//!
//! A [`CopySource`] shows what is stored as it stands there, sealed values sealed; a [`CopyTarget`] takes it. Both are met by
//! each engine, and a source by a running control service, too. Knows no SQL.

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
