//! Reads the readable parts of a log in a file with damaged pages: by ranges of revisions, from both ends, halving around
//! unreadable parts. The index of keys is a second source of existing objects.

use std::collections::{BTreeMap, HashMap, VecDeque};

use futures::TryStreamExt;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::key::Resource;
use crate::sqlite::row;

/// Result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Number of existing objects that cannot be read.
    pub unreadable: u64,
    /// Number of objects known to have existed whose last state is on an unreadable page.
    pub lost: u64,
    /// SQLite's report about a damaged file, which may have contained more objects.
    pub damage: Option<String>,
}

/// Maximum number of ranges that are read: a damaged page needs up to twice the number of its revisions.
const MAX_RANGES: u32 = 20_000;

const ASCENDING: &str = "SELECT resource, namespace, name, revision, deleted FROM log NOT INDEXED \
    WHERE revision BETWEEN ? AND ? ORDER BY revision";
const DESCENDING: &str = "SELECT resource, namespace, name, revision, deleted FROM log NOT INDEXED \
    WHERE revision BETWEEN ? AND ? ORDER BY revision DESC";
const BY_KEY: [&str; 2] = [
    "SELECT resource, namespace, name, revision, deleted FROM log INDEXED BY log_key \
     WHERE revision BETWEEN ? AND ? ORDER BY resource, namespace, name, revision",
    "SELECT resource, namespace, name, revision, deleted FROM log INDEXED BY log_key \
     WHERE revision BETWEEN ? AND ? ORDER BY resource DESC, namespace DESC, name DESC, revision DESC",
];
/// Resources, from the table and from the index of names.
const RESOURCES: [&str; 2] = [
    "SELECT id, api_group, resource FROM resource NOT INDEXED ORDER BY id",
    "SELECT id, api_group, resource FROM resource ORDER BY api_group, resource",
];

/// True if an error concerns the file, so that other parts of it may be readable.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    /// SQLITE_IOERR and SQLITE_CORRUPT.
    const FILE_ERRORS: [i32; 2] = [10, 11];
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<i32>().ok()).is_some_and(|code| FILE_ERRORS.contains(&(code & 0xff)))
}

/// Resource ID, namespace and name as stored.
type StoredKey = (i64, Vec<u8>, Vec<u8>);

/// Last known state of each object: its revision, and true for a tombstone.
#[derive(Default)]
pub(super) struct LastStates(BTreeMap<StoredKey, (i64, bool)>);

impl LastStates {
    /// Reads the last states of a log.
    pub(super) async fn read(connection: &mut SqliteConnection) -> Self {
        let mut heads = Self::default();
        let mut top = i64::MAX;
        for select in ["SELECT revision FROM meta", "SELECT max(revision) FROM log"] {
            if let Ok(revision) = sqlx::query_scalar::<_, i64>(select).fetch_one(&mut *connection).await {
                top = revision;
                break;
            }
        }
        for select in BY_KEY {
            if heads.read_range(connection, select, (0, i64::MAX)).await.is_ok() {
                break;
            }
        }
        let mut ranges = VecDeque::from([(0, top)]);
        for _ in 0..MAX_RANGES {
            let Some((mut first, mut last)) = ranges.pop_front() else { break };
            let Err(good) = heads.read_range(connection, ASCENDING, (first, last)).await else { continue };
            first = good.map_or(first, |good| first.max(good.saturating_add(1)));
            let Err(good) = heads.read_range(connection, DESCENDING, (first, last)).await else { continue };
            last = good.map_or(last, |good| last.min(good.saturating_sub(1)));
            if first < last {
                let middle = first + (last - first) / 2;
                ranges.extend([(first, middle), (middle + 1, last)]);
            }
        }
        heads
    }

    /// Reads states of a range of revisions. Returns the last revision read before an unreadable part as `Err`.
    async fn read_range(
        &mut self,
        connection: &mut SqliteConnection,
        select: &'static str,
        (first, last): (i64, i64),
    ) -> Result<(), Option<i64>> {
        let mut good = None;
        let mut rows = sqlx::query(select).bind(first).bind(last).fetch(connection);
        while let Some(row) = rows.try_next().await.map_err(|_| good)? {
            // Ignores an invalid row, which belongs to no object.
            if let Ok(revision) = self.add(&row) {
                good = Some(revision);
            }
        }
        Ok(())
    }

    fn add(&mut self, row: &SqliteRow) -> Result<i64, sqlx::Error> {
        let key = (row.try_get(0)?, row.try_get_unchecked(1)?, row.try_get_unchecked(2)?);
        let (revision, deleted): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
        let head = self.0.entry(key).or_insert((revision, deleted != 0));
        if head.0 < revision {
            *head = (revision, deleted != 0);
        }
        Ok(revision)
    }

    /// Iterates over resource ID and revision of each existing object, in key order.
    pub(super) fn current(&self) -> impl Iterator<Item = (i64, i64)> {
        self.0
            .iter()
            .filter(|(_, (_, deleted))| !deleted)
            .map(|((resource, ..), (revision, _))| (*resource, *revision))
    }
}

/// Returns the readable resources.
pub(super) async fn resources(connection: &mut SqliteConnection) -> HashMap<i64, Resource> {
    let mut found = HashMap::new();
    for select in RESOURCES {
        let mut rows = sqlx::query(select).fetch(&mut *connection);
        // Rows after an unreadable part are found by the other query.
        while let Ok(Some(row)) = rows.try_next().await {
            if let (Ok(id), Ok(Ok(resource))) = (row.try_get(0), row::resource(&row, 1)) {
                found.insert(id, resource);
            }
        }
    }
    found
}
