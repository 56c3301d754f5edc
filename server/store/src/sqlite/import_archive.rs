//! Writes the archive of a copy to a SQLite file.

use super::import::SqliteTarget;
use super::statement::Batch;
use crate::checksum;
use crate::copy::{ArchivePart, ArchivedState, CopyError, Kept, TimeMark};
use crate::key::split_path;

impl SqliteTarget {
    pub(super) async fn write_archive(&mut self, part: ArchivePart) -> Result<(), CopyError> {
        let batch = self.archive_batch(part).map_err(|error| self.failed(&error))?;
        self.run(batch).await
    }

    fn archive_batch(&mut self, part: ArchivePart) -> Result<Batch, sqlx::Error> {
        let mut batch = Batch::default();
        batch.statement("BEGIN IMMEDIATE");
        let mut states = Vec::with_capacity(part.states.len());
        for state in part.states {
            states.push((self.number(&mut batch, state.key.resource())?, state));
        }
        insert_states(&mut batch, &states)?;
        let marks = "INSERT OR IGNORE INTO mark (revision, at) VALUES ";
        batch.rows(marks, "(?,?)", "", &part.marks, |batch, TimeMark { revision, at }| {
            batch.bind(*revision)?;
            batch.bind(*at)
        })?;
        if let Some(kept) = part.kept {
            self.end_archive(&mut batch, kept)?;
        }
        batch.statement("COMMIT");
        Ok(batch)
    }

    fn end_archive(&mut self, batch: &mut Batch, kept: Kept) -> Result<(), sqlx::Error> {
        for (resource, since) in &kept.since {
            let id = self.number(batch, resource)?;
            batch.statement("INSERT INTO archived (resource, since) VALUES (?, ?)");
            batch.bind(id)?;
            batch.bind(*since)?;
        }
        batch.rows("INSERT INTO lost (after, until) VALUES ", "(?,?)", "", &kept.lost, |batch, lost| {
            batch.bind(lost.after)?;
            batch.bind(lost.until)
        })?;
        batch.statement("DELETE FROM archive WHERE resource NOT IN (SELECT resource FROM archived)");
        Ok(())
    }
}

fn insert_states(batch: &mut Batch, states: &[(i64, ArchivedState)]) -> Result<(), sqlx::Error> {
    let head = "INSERT INTO archive (revision, resource, namespace, name, previous, deleted, until, bytes, value, checksum) VALUES ";
    batch.rows(head, "(?,?,?,?,?,?,?,?,?,?)", "", states, |batch, (resource, state)| {
        let (namespace, name) = split_path(state.key.path());
        batch.bind(state.revision)?;
        batch.bind(*resource)?;
        batch.bind(namespace.to_owned())?;
        batch.bind(name.to_owned())?;
        batch.bind(state.previous)?;
        batch.bind(i64::from(state.deleted))?;
        batch.bind(state.until)?;
        batch.bind(i64::try_from(state.value.len()).unwrap_or(i64::MAX))?;
        batch.bind(state.value.clone())?;
        batch.bind(checksum::of_stored(&state.key, state.revision, &state.value))
    })
}
