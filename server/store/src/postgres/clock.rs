//! The database's clock, by which all of its processes go.

use crate::unix_time;

/// The database's clock in whole Unix seconds, as a subquery: it is read once for a statement, and a comparison with it uses an
/// index, as one with a function that changes from row to row does not.
macro_rules! now {
    () => {
        "(SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)"
    };
}
pub(super) use now;

/// How far this process's clock (a parameter, from [`ours`]) is ahead of the database's, in seconds, rounded: clocks that differ by less
/// than half a second name the same second for the same moment, whenever within a second both are read.
macro_rules! ahead {
    ($ours:literal) => {
        concat!("(SELECT round(", $ours, "::float8 - extract(epoch FROM clock_timestamp())::float8)::bigint)")
    };
}
pub(super) use ahead;

/// The revision at a time of the database's clock (an expression), as a subquery; 0 if no mark is that old. Commits after the last
/// mark are in its second.
macro_rules! revision_at {
    ($($time:expr),+) => {
        concat!(
            "(SELECT coalesce((SELECT CASE WHEN m.revision = (SELECT max(revision) FROM mark) \
             THEN (SELECT revision FROM meta WHERE id = 1) ELSE m.revision END FROM mark m WHERE m.at <= ",
            $($time),+,
            " ORDER BY m.at DESC, m.revision DESC LIMIT 1), 0))"
        )
    };
}
pub(super) use revision_at;

/// This process's clock in Unix seconds.
pub(super) fn ours() -> f64 {
    unix_time::since().as_secs_f64()
}
