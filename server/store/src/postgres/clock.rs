//! Clock of the database, which all of its processes use.

use crate::unix_time;

/// Current time of the database in whole Unix seconds, as a subquery: it is evaluated once per statement, so a comparison can
/// use an index, unlike a comparison with a volatile function.
macro_rules! now {
    () => {
        "(SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)"
    };
}
pub(super) use now;

/// Difference of the clock of this process (a parameter, from [`process_clock`]) to that of the database, in rounded seconds.
/// Clocks that differ by less than half a second yield the same second, at whatever fraction of a second they are read.
macro_rules! clock_difference {
    ($process_clock:literal) => {
        concat!(
            "(SELECT round(",
            $process_clock,
            "::float8 - extract(epoch FROM clock_timestamp())::float8)::bigint)"
        )
    };
}
pub(super) use clock_difference;

/// Revision at a time of the database's clock (an expression), as a subquery; 0 if no mark is that old. Commits after the last
/// mark belong to its second.
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

/// Returns the clock of this process in Unix seconds.
pub(super) fn process_clock() -> f64 {
    unix_time::since_epoch().as_secs_f64()
}
