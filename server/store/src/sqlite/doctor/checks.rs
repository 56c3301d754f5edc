//! Checks of the doctor: SQLite's integrity check, the mark, counters, the index of owners, the chain of states.

use std::collections::BTreeSet;

use futures::TryStreamExt;
use sqlx::{Row, SqliteConnection};

use super::finding::{Examination, Finding};
use crate::record::Record;
use crate::sqlite::mark::{self, DatabaseIdentity, Mark, Verdict};
use crate::sqlite::row;
use crate::unreadable::Unreadable;

/// Maximum number of reported diagnostics of SQLite.
const MAX_DIAGNOSTICS: u32 = 100;
/// Maximum number of reported entries of the index of owners.
const MAX_OWNERS: usize = 100;

/// Runs SQLite's check of pages, and of indexes against tables.
pub(super) async fn integrity(connection: &mut SqliteConnection, examination: &mut Examination) {
    let pragma = sqlx::AssertSqlSafe(format!("PRAGMA integrity_check({MAX_DIAGNOSTICS})"));
    let found: Result<Vec<String>, _> = sqlx::query_scalar(pragma).fetch_all(connection).await;
    match found {
        Ok(lines) => {
            let diagnostics = lines.into_iter().filter(|line| line != "ok");
            examination.findings.extend(diagnostics.map(Finding::Damaged));
        }
        Err(error) => examination.damaged(&error),
    }
}

/// Checks that the database is the one that was served last.
pub(super) fn check_mark(mark: Option<&Mark>, found: &DatabaseIdentity, examination: &mut Examination) {
    if let Verdict::Replaced(reason) = mark::compare(mark, Some(found)) {
        examination.inconsistent(format!("not the database last served from this path: {reason}"));
    }
}

/// Checks for resources whose names cannot be read.
pub(super) async fn check_resources(
    connection: &mut SqliteConnection,
    examination: &mut Examination,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query("SELECT id, api_group, resource FROM resource ORDER BY id").fetch_all(connection);
    for row in rows.await? {
        if let Err(damaged_name) = row::resource(&row, 1)? {
            let (id, remains) = (row.try_get(0)?, damaged_name.to_string());
            examination.findings.push(Finding::UnreadableResource { id, remains });
        }
    }
    Ok(())
}

/// Rules about tables, each with a query that counts violations.
const RULES: [(&str, &str); 6] = [
    (
        "states are newer than the store's revision",
        "SELECT count(*) FROM log, meta WHERE log.revision > meta.revision",
    ),
    (
        "the compaction revision is later than the store's revision",
        "SELECT count(*) FROM meta WHERE compacted > revision",
    ),
    (
        "states belong to no resource",
        "SELECT count(*) FROM log WHERE NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = log.resource)",
    ),
    ("states follow a later state", "SELECT count(*) FROM log WHERE previous >= revision"),
    (
        "states follow a state of another object",
        "SELECT count(*) FROM log l JOIN log p ON p.revision = l.previous WHERE l.previous > 0 AND \
         (p.resource <> l.resource OR p.namespace <> l.namespace OR p.name <> l.name)",
    ),
    (
        "objects are indexed as dependents but do not exist",
        "SELECT count(*) FROM owner o WHERE NOT EXISTS (SELECT 1 FROM log l WHERE l.resource = o.resource \
         AND l.namespace = o.namespace AND l.name = o.name AND l.deleted = 0 AND l.revision = (SELECT max(n.revision) \
         FROM log n WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name))",
    ),
];

/// Rules about the archive.
const ARCHIVE_RULES: [(&str, &str); 3] = [
    (
        "past states are newer than the store's revision",
        "SELECT count(*) FROM archive, meta WHERE archive.until > meta.revision",
    ),
    ("past states end before they begin", "SELECT count(*) FROM archive WHERE until < revision"),
    (
        "past states belong to no resource",
        "SELECT count(*) FROM archive WHERE NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = archive.resource)",
    ),
];

/// Returns true if there is an archive. A file that was only served by older versions has none.
pub(super) async fn has_archive(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let tables = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = 'archive'");
    let tables: i64 = tables.fetch_one(connection).await?;
    Ok(tables == 1)
}

/// Checks the rules of the archive.
pub(super) async fn check_archive(connection: &mut SqliteConnection, examination: &mut Examination) {
    check_rules(connection, &ARCHIVE_RULES, examination).await;
}

/// Checks counters and references.
pub(super) async fn check_consistency(connection: &mut SqliteConnection, examination: &mut Examination) {
    check_rules(connection, &RULES, examination).await;
}

async fn check_rules(
    connection: &mut SqliteConnection,
    rules: &[(&str, &'static str)],
    examination: &mut Examination,
) {
    for &(rule, query) in rules {
        let count: Result<i64, _> = sqlx::query_scalar(query).fetch_one(&mut *connection).await;
        match count {
            Ok(0) => {}
            Ok(count) => examination.inconsistent(format!("{count} {rule}")),
            Err(error) => examination.damaged(&error),
        }
    }
}

/// Compares owner references in objects with the index of owners.
#[derive(Default)]
pub(super) struct OwnerCheck {
    references: BTreeSet<(String, String)>,
    /// Sealed objects, whose owners are not known.
    sealed: BTreeSet<String>,
}

impl OwnerCheck {
    pub(super) fn add(&mut self, record: &Record) {
        for owner in record.value.owners() {
            self.references.insert((record.key.to_string(), owner.to_string()));
        }
    }

    pub(super) fn add_sealed(&mut self, object: &Unreadable) {
        self.sealed.insert(object.key().to_string());
    }

    pub(super) async fn compare(
        mut self,
        connection: &mut SqliteConnection,
        examination: &mut Examination,
    ) -> Result<(), sqlx::Error> {
        const SELECT: &str = "SELECT r.api_group, r.resource, o.namespace, o.name, o.owner_uid FROM owner o \
            JOIN resource r ON r.id = o.resource";
        let mut unreadable = std::mem::take(&mut self.sealed);
        unreadable.extend(examination.findings.iter().filter_map(unreadable_key));
        let mut extra = Vec::new();
        let mut rows = sqlx::query(SELECT).fetch(connection);
        while let Some(row) = rows.try_next().await? {
            let uid = row::text(&row, 4)?.into_display().into_owned();
            // If the name of a resource cannot be read, its objects cannot be read either.
            let Ok(resource) = row::resource(&row, 0)? else { continue };
            let key = match row::key(&resource, &row, 2)? {
                Ok(key) => key,
                Err(damaged) => damaged.remains,
            };
            let entry = (key.to_string(), uid);
            // The owners of an unreadable object are only in the index.
            if !self.references.remove(&entry) && !unreadable.contains(&entry.0) {
                extra.push(entry);
            }
        }
        for (key, owner) in extra.into_iter().take(MAX_OWNERS) {
            examination
                .inconsistent(format!("{key} is indexed as a dependent of {owner}, which is not its owner"));
        }
        for (key, owner) in self.references.into_iter().take(MAX_OWNERS) {
            examination.inconsistent(format!("{key} has the owner {owner}, which is missing from the index"));
        }
        Ok(())
    }
}

fn unreadable_key(finding: &Finding) -> Option<String> {
    match finding {
        Finding::Unreadable(object) => Some(object.key().to_string()),
        _ => None,
    }
}
