//! Writes the archive of a copy to a PostgreSQL database, in the transaction of the copy.

use super::target::{KeyColumns, PostgresTarget};
use crate::checksum;
use crate::copy::{ArchiveContents, ArchivePart, ArchivedState};

impl PostgresTarget {
    pub(super) async fn write_archive(&mut self, part: ArchivePart) -> Result<(), sqlx::Error> {
        const MARKS: &str = "INSERT INTO mark (revision, at) SELECT * FROM unnest($1::bigint[], $2::bigint[]) \
            ON CONFLICT DO NOTHING";
        if !part.states.is_empty() {
            self.insert_past(&part.states).await?;
        }
        if !part.marks.is_empty() {
            let (revisions, times): (Vec<i64>, Vec<i64>) =
                part.marks.iter().map(|mark| (mark.revision, mark.at)).unzip();
            sqlx::query(MARKS).bind(revisions).bind(times).execute(&mut self.connection).await?;
        }
        match part.contents {
            Some(kept) => self.end_archive(kept).await,
            None => Ok(()),
        }
    }

    async fn insert_past(&mut self, states: &[ArchivedState]) -> Result<(), sqlx::Error> {
        const ARCHIVE: &str = "INSERT INTO archive (resource, namespace, name, revision, previous, deleted, until, bytes, value, checksum) \
            SELECT resource, namespace, name, revision, previous, deleted, until, octet_length(value), value, checksum FROM unnest($1::text[], \
            $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[], $8::bytea[], $9::bigint[]) \
            AS s(resource, namespace, name, revision, previous, deleted, until, value, checksum)";
        let mut keys = KeyColumns::default();
        states.iter().for_each(|state| keys.push(&state.key));
        let [resources, namespaces, names] = keys.0;
        let column = |field: fn(&ArchivedState) -> i64| states.iter().map(field).collect::<Vec<_>>();
        let deleted: Vec<_> = states.iter().map(|state| state.deleted).collect();
        let values: Vec<&[u8]> = states.iter().map(|state| &*state.value).collect();
        let insert = sqlx::query(ARCHIVE).bind(resources).bind(namespaces).bind(names);
        let insert = insert.bind(column(|state| state.revision)).bind(column(|state| state.previous));
        let insert = insert.bind(deleted).bind(column(|state| state.until)).bind(values);
        let checksum =
            |state: &ArchivedState| checksum::compute_checksum(&state.key, state.revision, &state.value);
        let insert = insert.bind(states.iter().map(checksum).collect::<Vec<_>>());
        insert.execute(&mut self.connection).await.map(drop)
    }

    async fn end_archive(&mut self, contents: ArchiveContents) -> Result<(), sqlx::Error> {
        const ARCHIVED: &str =
            "INSERT INTO archived (resource, since) SELECT * FROM unnest($1::text[], $2::bigint[])";
        const LOST: &str = "INSERT INTO lost (after, until) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
        const OTHERS: &str = "DELETE FROM archive WHERE resource NOT IN (SELECT resource FROM archived)";
        let (resources, since): (Vec<String>, Vec<i64>) =
            contents.since.iter().map(|(resource, since)| (resource.to_string(), *since)).unzip();
        let (after, until): (Vec<i64>, Vec<i64>) =
            contents.gaps.iter().map(|gap| (gap.after, gap.until)).unzip();
        sqlx::query(ARCHIVED).bind(resources).bind(since).execute(&mut self.connection).await?;
        sqlx::query(LOST).bind(after).bind(until).execute(&mut self.connection).await?;
        sqlx::query(OTHERS).execute(&mut self.connection).await.map(drop)
    }
}
