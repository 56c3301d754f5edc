//! Reads the archive of a SQLite file for copies, together with the parts of the log that will move to it.
//!
//! States superseded up to the compaction point are in the archive, later ones in the log. Within one transaction each state is
//! in one of them.

use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, Sqlite, Transaction};

use super::history::PREVIOUS;
use super::source::SqliteSource;
use super::{open, row};
use crate::checksum;
use crate::copy::{
    ArchiveContents, ArchiveCursor, ArchivePart, ArchivedState, CopyError, PAGE_MARKS, PAGE_STATES,
    RevisionGap, StoreExtent, TimeMark, page_length,
};

type ReadTransaction = Transaction<'static, Sqlite>;

/// Archived states superseded after a cursor (`?1`, `?2`) and up to a revision (`?3`), limited to `?4`.
const IN_ARCHIVE: &str = "SELECT revision, until, bytes FROM archive WHERE (until, revision) > (?1, ?2) AND until <= ?3 \
    AND +resource IN (SELECT resource FROM archived) ORDER BY until, revision LIMIT ?4";

/// Last revision of a piece of the log that begins at a revision (`?1`), ends at most at another (`?2`), and has at most `?3`
/// rows of any kind; NULL if there are no more.
const PIECE_END: &str = "SELECT max(revision) FROM (SELECT revision FROM log WHERE revision >= ?1 AND revision <= ?2 \
    ORDER BY revision LIMIT ?3)";

/// Returns a query like [`IN_ARCHIVE`] for a piece of the log: states superseded in it, and tombstones.
fn in_log(from: i64, to: i64) -> String {
    const ARCHIVED: &str = "+l.resource IN (SELECT resource FROM archived)";
    format!(
        "SELECT revision, until, bytes FROM (\
         SELECT p.revision, l.revision AS until, length(p.value) AS bytes FROM log l JOIN log p ON {PREVIOUS} \
         WHERE l.revision >= {from} AND l.revision <= {to} AND {ARCHIVED} UNION ALL \
         SELECT l.revision, l.revision, length(l.value) FROM log l \
         WHERE l.revision >= {from} AND l.revision <= {to} AND +l.deleted = 1 AND {ARCHIVED}) \
         WHERE (until, revision) > (?1, ?2) AND until <= ?3 ORDER BY until, revision LIMIT ?4"
    )
}

impl SqliteSource {
    pub(super) async fn read_archive(
        &self,
        revision: i64,
        after: ArchiveCursor,
    ) -> Result<ArchivePart, CopyError> {
        let (mut transaction, extent) = self.begin().await?;
        let part = self.archive_part(&mut transaction, &extent, revision, after).await?;
        drop(transaction);
        self.check_unserved(part)
    }

    async fn archive_part(
        &self,
        transaction: &mut ReadTransaction,
        extent: &StoreExtent,
        revision: i64,
        after: ArchiveCursor,
    ) -> Result<ArchivePart, CopyError> {
        let mut part = ArchivePart::default();
        if !self.has_archive(transaction).await? {
            part.contents = Some(ArchiveContents::default());
            return Ok(part);
        }
        part.states = self.past_states(transaction, IN_ARCHIVE, revision, after).await?;
        let mut from = after.until.max(extent.oldest.saturating_add(1));
        while part.states.is_empty()
            && let Some(to) = self.piece_end(transaction, from, revision).await?
        {
            part.states = self.past_states(transaction, &in_log(from, to), revision, after).await?;
            from = to.saturating_add(1);
        }
        if !part.states.is_empty() {
            return Ok(part);
        }
        part.marks = self.marks(transaction, revision, after.mark).await?;
        if part.marks.is_empty() {
            part.contents = Some(self.contents(transaction).await?);
        }
        Ok(part)
    }

    /// Returns true if the file has an archive. A file that was only served by older versions has none.
    async fn has_archive(&self, reading: &mut ReadTransaction) -> Result<bool, CopyError> {
        const TABLES: &str =
            "SELECT count(*) FROM sqlite_schema WHERE name IN ('archive', 'archived', 'lost')";
        let tables: Result<i64, _> = sqlx::query_scalar(TABLES).fetch_one(&mut **reading).await;
        Ok(tables.map_err(|error| self.database_error(&error))? == 3)
    }

    /// Returns the end of the next piece of the log.
    async fn piece_end(
        &self,
        transaction: &mut ReadTransaction,
        from: i64,
        revision: i64,
    ) -> Result<Option<i64>, CopyError> {
        let piece = sqlx::query_scalar(PIECE_END).bind(from).bind(revision).bind(PAGE_STATES as i64);
        piece.fetch_one(&mut **transaction).await.map_err(|error| self.database_error(&error))
    }

    async fn past_states(
        &self,
        transaction: &mut ReadTransaction,
        keys: &str,
        revision: i64,
        after: ArchiveCursor,
    ) -> Result<Vec<ArchivedState>, CopyError> {
        let failed = |error| self.database_error(&error);
        let sizes = sqlx::query_scalar(AssertSqlSafe(format!("SELECT bytes FROM ({keys})")));
        let sizes = sizes.bind(after.until).bind(after.revision).bind(revision).bind(PAGE_STATES as i64);
        let sizes: Vec<i64> = sizes.persistent(false).fetch_all(&mut **transaction).await.map_err(failed)?;
        if sizes.is_empty() {
            return Ok(Vec::new());
        }
        let column = open::checksum_column(transaction).await.map_err(failed)?;
        let checksum = match column {
            "NULL" => column,
            _ => "iif(a.revision IS NULL, l.checksum, a.checksum)",
        };
        let select = format!(
            "SELECT r.api_group, r.resource, coalesce(a.namespace, l.namespace), coalesce(a.name, l.name), k.revision, \
             coalesce(a.previous, l.previous), coalesce(a.deleted, l.deleted), k.until, coalesce(a.value, l.value), {checksum} AS checksum \
             FROM ({keys}) k LEFT JOIN archive a ON a.revision = k.revision LEFT JOIN log l ON l.revision = k.revision \
             LEFT JOIN resource r ON r.id = coalesce(a.resource, l.resource) ORDER BY k.until, k.revision"
        );
        let select = sqlx::query(AssertSqlSafe(select)).bind(after.until).bind(after.revision).bind(revision);
        let rows = select.bind(page_length(&sizes)).persistent(false).fetch_all(&mut **transaction).await;
        rows.map_err(failed)?.iter().map(|row| self.past_state(row)).collect()
    }

    fn past_state(&self, row: &SqliteRow) -> Result<ArchivedState, CopyError> {
        let failed = |error| self.database_error(&error);
        let unreadable = |reason: String| CopyError::Unreadable(format!("{}: {reason}", self.place()));
        let resource = row::resource(row, 0).map_err(failed)?;
        let resource =
            resource.map_err(|remains| unreadable(format!("the name of {remains} cannot be read")))?;
        let key = row::key(&resource, row, 2).map_err(failed)?;
        let key = key.map_err(|damaged| unreadable(format!("{}: {}", damaged.remains, damaged.reason())))?;
        let read = || -> Result<ArchivedState, sqlx::Error> {
            Ok(ArchivedState {
                revision: row.try_get(4)?,
                previous: row.try_get(5)?,
                deleted: row.try_get::<i64, _>(6)? != 0,
                until: row.try_get(7)?,
                value: row.try_get(8)?,
                key,
            })
        };
        let state = read().map_err(failed)?;
        let checksum = row::checksum(row, "checksum").map_err(failed)?;
        checksum::verify_copied(&state.key, state.revision, &state.value, checksum)?;
        Ok(state)
    }

    /// Returns the time marks after a mark. The last one is for `revision` itself, with the time of the next mark or of
    /// the last one.
    async fn marks(
        &self,
        transaction: &mut ReadTransaction,
        revision: i64,
        after: i64,
    ) -> Result<Vec<TimeMark>, CopyError> {
        const MARKS: &str = "SELECT min(revision, ?2), at FROM mark WHERE revision > ?1 AND revision <= \
            coalesce((SELECT min(revision) FROM mark WHERE revision >= ?2), ?2) UNION ALL SELECT ?2, at \
            FROM (SELECT revision, at FROM mark ORDER BY revision DESC LIMIT 1) WHERE revision < ?2 ORDER BY 1 LIMIT ?3";
        if after >= revision {
            return Ok(Vec::new());
        }
        let marks = sqlx::query_as(MARKS).bind(after).bind(revision).bind(PAGE_MARKS);
        let marks: Vec<(i64, i64)> =
            marks.fetch_all(&mut **transaction).await.map_err(|error| self.database_error(&error))?;
        Ok(marks.into_iter().map(|(revision, at)| TimeMark { revision, at }).collect())
    }

    async fn contents(&self, reading: &mut ReadTransaction) -> Result<ArchiveContents, CopyError> {
        const SINCE: &str =
            "SELECT r.api_group, r.resource, d.since FROM archived d JOIN resource r ON r.id = d.resource";
        let failed = |error| self.database_error(&error);
        let mut contents = ArchiveContents::default();
        for row in sqlx::query(SINCE).fetch_all(&mut **reading).await.map_err(failed)? {
            // The states of a resource whose name cannot be read are not served.
            if let Ok(resource) = row::resource(&row, 0).map_err(failed)? {
                contents.since.insert(resource, row.try_get(2).map_err(failed)?);
            }
        }
        let gaps = sqlx::query_as("SELECT after, until FROM lost ORDER BY after");
        let gaps: Vec<(i64, i64)> = gaps.fetch_all(&mut **reading).await.map_err(failed)?;
        contents.gaps = gaps.into_iter().map(|(after, until)| RevisionGap { after, until }).collect();
        Ok(contents)
    }
}
