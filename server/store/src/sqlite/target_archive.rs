//! Writes the archive of a copy to a SQLite file.

use super::statement::StatementBatch;
use super::target::SqliteTarget;
use crate::checksum;
use crate::copy::{ArchiveContents, ArchivePart, ArchivedState, CopyError, TimeMark};
use crate::key::split_path;

impl SqliteTarget {
    pub(super) async fn write_archive(&mut self, part: ArchivePart) -> Result<(), CopyError> {
        let batch = self.archive_batch(part).map_err(|error| self.database_error(&error))?;
        self.run(batch).await
    }

    fn archive_batch(&mut self, part: ArchivePart) -> Result<StatementBatch, sqlx::Error> {
        let mut batch = StatementBatch::default();
        batch.statement("BEGIN IMMEDIATE");
        let mut states = Vec::with_capacity(part.states.len());
        for state in part.states {
            states.push((self.resource_id(&mut batch, state.key.resource())?, state));
        }
        insert_states(&mut batch, &states)?;
        let marks = "INSERT OR IGNORE INTO mark (revision, at) VALUES ";
        batch.rows(marks, "(?,?)", "", &part.marks, |batch, TimeMark { revision, at }| {
            batch.bind(*revision)?;
            batch.bind(*at)
        })?;
        if let Some(contents) = part.contents {
            self.end_archive(&mut batch, contents)?;
        }
        batch.statement("COMMIT");
        Ok(batch)
    }

    fn end_archive(
        &mut self,
        batch: &mut StatementBatch,
        contents: ArchiveContents,
    ) -> Result<(), sqlx::Error> {
        for (resource, since) in &contents.since {
            let id = self.resource_id(batch, resource)?;
            batch.statement("INSERT INTO archived (resource, since) VALUES (?, ?)");
            batch.bind(id)?;
            batch.bind(*since)?;
        }
        batch.rows(
            "INSERT INTO lost (after, until) VALUES ",
            "(?,?)",
            "",
            &contents.gaps,
            |batch, gap| {
                batch.bind(gap.after)?;
                batch.bind(gap.until)
            },
        )?;
        batch.statement("DELETE FROM archive WHERE resource NOT IN (SELECT resource FROM archived)");
        Ok(())
    }
}

fn insert_states(batch: &mut StatementBatch, states: &[(i64, ArchivedState)]) -> Result<(), sqlx::Error> {
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
        batch.bind(checksum::compute_checksum(&state.key, state.revision, &state.value))
    })
}
