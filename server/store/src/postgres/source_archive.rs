//! Reads the archive of a PostgreSQL database for copies, together with the parts of the log that will move to it.
//!
//! States superseded up to the swept revision are in the archive, later ones in the log. Within one transaction each state is
//! in one of them.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::row;
use super::source::PostgresSource;
use crate::checksum;
use crate::copy::{
    ArchiveContents, ArchiveCursor, ArchivePart, ArchivedState, CopyError, PAGE_MARKS, PAGE_STATES,
    RevisionGap, TimeMark, page_length,
};

/// Archived states superseded after a cursor (`$1`, `$2`) and up to a revision (`$3`), limited to `$4`.
macro_rules! in_archive {
    () => {
        "SELECT a.revision, a.until, a.bytes FROM archive a WHERE (a.until, a.revision) > ($1, $2) AND a.until <= $3 \
         AND a.resource IN (SELECT resource FROM archived) ORDER BY a.until, a.revision LIMIT $4"
    };
}

/// Last revision of a piece of the log that begins at a revision (`$1`), ends at most at another (`$2`), and has at most `$3`
/// rows of any kind; NULL if there are no more.
const PIECE_END: &str = "SELECT max(revision) FROM (SELECT revision FROM log WHERE revision >= $1 AND revision <= $2 \
    ORDER BY revision LIMIT $3) l";

/// Query like [`in_archive`] for a piece of the log (from `$5` to `$6`): states superseded in it, and tombstones.
macro_rules! in_log {
    () => {
        "SELECT revision, until, bytes FROM (\
         SELECT p.revision, l.revision AS until, octet_length(p.value)::bigint AS bytes \
         FROM log l JOIN log p ON p.revision = l.previous AND l.previous > 0 \
         WHERE l.revision >= $5 AND l.revision <= $6 AND l.resource IN (SELECT resource FROM archived) UNION ALL \
         SELECT l.revision, l.revision, octet_length(l.value)::bigint FROM log l \
         WHERE l.revision >= $5 AND l.revision <= $6 AND l.deleted AND l.resource IN (SELECT resource FROM archived)) s \
         WHERE (until, revision) > ($1, $2) AND until <= $3 ORDER BY until, revision LIMIT $4"
    };
}

/// Query for the rows with the keys that a query returns.
macro_rules! states_of {
    ($keys:expr) => {
        concat!(
            "SELECT coalesce(a.resource, l.resource), coalesce(a.namespace, l.namespace), coalesce(a.name, l.name), \
             k.revision, coalesce(a.previous, l.previous), coalesce(a.deleted, l.deleted), k.until, \
             coalesce(a.value, l.value), \
             CASE WHEN a.revision IS NULL THEN l.checksum ELSE a.checksum END AS checksum FROM (",
            $keys,
            ") k LEFT JOIN archive a ON a.revision = k.revision LEFT JOIN log l ON l.revision = k.revision \
             ORDER BY k.until, k.revision"
        )
    };
}

/// Queries for past states in the archive or the log.
struct PastStateQueries {
    /// Query for the sizes of the states.
    sizes: &'static str,
    states: &'static str,
    /// First and last revision of the piece of the log.
    piece: Option<(i64, i64)>,
}

impl PostgresSource {
    pub(super) async fn read_archive(
        &self,
        revision: i64,
        after: ArchiveCursor,
    ) -> Result<ArchivePart, CopyError> {
        const ARCHIVE: PastStateQueries = PastStateQueries {
            sizes: concat!("SELECT bytes FROM (", in_archive!(), ") k"),
            states: states_of!(in_archive!()),
            piece: None,
        };
        const LOG: PastStateQueries = PastStateQueries {
            sizes: concat!("SELECT bytes FROM (", in_log!(), ") k"),
            states: states_of!(in_log!()),
            piece: None,
        };
        let (mut transaction, meta) = self.begin_with_meta().await?;
        let failed = |error: sqlx::Error| self.database_error(&error);
        let read = async {
            let states = self.past_states(&mut transaction, &ARCHIVE, revision, after).await?;
            let mut part = ArchivePart { states, ..ArchivePart::default() };
            let mut from = after.until.max(meta.gc_revision.saturating_add(1));
            while part.states.is_empty()
                && let Some(to) = self.piece_end(&mut transaction, from, revision).await.map_err(failed)?
            {
                let queries = PastStateQueries { piece: Some((from, to)), ..LOG };
                part.states = self.past_states(&mut transaction, &queries, revision, after).await?;
                from = to.saturating_add(1);
            }
            if !part.states.is_empty() {
                return Ok(part);
            }
            part.marks = self.marks(&mut transaction, revision, after.mark).await.map_err(failed)?;
            if part.marks.is_empty() {
                part.contents = Some(self.contents(&mut transaction).await.map_err(failed)?);
            }
            Ok(part)
        };
        let part = read.await?;
        transaction.commit().await.map_err(failed)?;
        Ok(part)
    }

    /// Returns the end of the next piece of the log.
    async fn piece_end(
        &self,
        connection: &mut PgConnection,
        from: i64,
        revision: i64,
    ) -> Result<Option<i64>, sqlx::Error> {
        let piece = sqlx::query_scalar(PIECE_END).bind(from).bind(revision).bind(PAGE_STATES as i64);
        self.pool.with_timeout(piece.fetch_one(connection)).await
    }

    async fn past_states(
        &self,
        connection: &mut PgConnection,
        queries: &PastStateQueries,
        revision: i64,
        after: ArchiveCursor,
    ) -> Result<Vec<ArchivedState>, CopyError> {
        let failed = |error: sqlx::Error| self.database_error(&error);
        let sizes = sqlx::query_scalar(queries.sizes).bind(after.until).bind(after.revision);
        let mut sizes = sizes.bind(revision).bind(PAGE_STATES as i64);
        if let Some((from, to)) = queries.piece {
            sizes = sizes.bind(from).bind(to);
        }
        let sizes: Vec<i64> =
            self.pool.with_timeout(sizes.fetch_all(&mut *connection)).await.map_err(failed)?;
        if sizes.is_empty() {
            return Ok(Vec::new());
        }
        let states = sqlx::query(queries.states).bind(after.until).bind(after.revision);
        let mut states = states.bind(revision).bind(page_length(&sizes));
        if let Some((from, to)) = queries.piece {
            states = states.bind(from).bind(to);
        }
        let rows = self.pool.with_timeout(states.fetch_all(connection)).await.map_err(failed)?;
        let mut states = Vec::with_capacity(rows.len());
        for row in &rows {
            let state = past_state(row).map_err(failed)?;
            let checksum = row.try_get("checksum").map_err(failed)?;
            checksum::verify_copied(&state.key, state.revision, &state.value, checksum)?;
            states.push(state);
        }
        Ok(states)
    }

    /// Returns the time marks after a mark. The last one is for `revision` itself, with the time of the next mark or of
    /// the last one.
    async fn marks(
        &self,
        connection: &mut PgConnection,
        revision: i64,
        after: i64,
    ) -> Result<Vec<TimeMark>, sqlx::Error> {
        const MARKS: &str = "SELECT least(revision, $2), at FROM mark WHERE revision > $1 AND revision <= \
            coalesce((SELECT min(revision) FROM mark WHERE revision >= $2), $2) UNION ALL SELECT $2, at \
            FROM (SELECT revision, at FROM mark ORDER BY revision DESC LIMIT 1) m WHERE revision < $2 ORDER BY 1 LIMIT $3";
        if after >= revision {
            return Ok(Vec::new());
        }
        let marks = sqlx::query_as(MARKS).bind(after).bind(revision).bind(PAGE_MARKS).fetch_all(connection);
        let marks: Vec<(i64, i64)> = self.pool.with_timeout(marks).await?;
        Ok(marks.into_iter().map(|(revision, at)| TimeMark { revision, at }).collect())
    }

    async fn contents(&self, connection: &mut PgConnection) -> Result<ArchiveContents, sqlx::Error> {
        let since = sqlx::query_as("SELECT resource, since FROM archived").fetch_all(&mut *connection);
        let since: Vec<(String, i64)> = self.pool.with_timeout(since).await?;
        let gaps = sqlx::query_as("SELECT after, until FROM lost ORDER BY after").fetch_all(connection);
        let gaps: Vec<(i64, i64)> = self.pool.with_timeout(gaps).await?;
        Ok(ArchiveContents {
            since: since.into_iter().map(|(resource, since)| (row::resource(&resource), since)).collect(),
            gaps: gaps.into_iter().map(|(after, until)| RevisionGap { after, until }).collect(),
        })
    }
}

fn past_state(row: &PgRow) -> Result<ArchivedState, sqlx::Error> {
    let resource = row::resource(row.try_get(0)?);
    Ok(ArchivedState {
        key: row::key(&resource, row, 1)?,
        revision: row.try_get(3)?,
        previous: row.try_get(4)?,
        deleted: row.try_get(5)?,
        until: row.try_get(6)?,
        value: row.try_get(7)?,
    })
}
