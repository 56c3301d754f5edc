//! Descriptions of database errors for callers, by SQLSTATE. Messages of PostgreSQL appear in the log.

use portico_gostd::os::error_text;

use crate::error::StoreError;

/// Returns the reason why the database rejected an operation.
pub(crate) fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(_) => reason_of_state(&sql_state(error).unwrap_or_default()).to_owned(),
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            format!("TLS: {}", error_text(error))
        }
        sqlx::Error::Io(error) => format!("connection lost: {}", error_text(error)),
        sqlx::Error::Tls(error) => format!("TLS: {error}"),
        sqlx::Error::PoolTimedOut => "request timed out".to_owned(),
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => "connection lost".to_owned(),
        sqlx::Error::Protocol(_) => "the server does not speak the PostgreSQL protocol".to_owned(),
        sqlx::Error::RowNotFound => "no store found in the tables".to_owned(),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => "cannot decode a stored row".to_owned(),
        _ => "request rejected".to_owned(),
    }
}

/// Returns the text for the log: the reason, and for an error of PostgreSQL its message and code.
pub(crate) fn log_text(error: &sqlx::Error) -> String {
    let reason = reason(error);
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            format!("{reason}: {} (SQLSTATE {code})", error.message())
        }
        sqlx::Error::Protocol(text) => format!("{reason}: {text}"),
        _ => reason,
    }
}

fn reason_of_state(state: &str) -> &'static str {
    match state {
        "53100" => "no space is left",
        "53200" => "out of memory",
        "53300" => "too many connections",
        "25006" => "the database is read-only",
        "57P03" => "the server is starting or shutting down",
        "57P01" | "57P02" => "the server was shut down",
        "57014" | "25P03" | "25P04" => "statement timed out",
        "55P03" => "timed out waiting for a table lock",
        "3D000" => "the database does not exist",
        "42P01" | "42703" | "3F000" => "the tables do not belong to a store",
        "42501" => "the user lacks a permission",
        _ => match state.get(..2) {
            Some("22" | "54") => "a name or UID is too long",
            Some("28") => "authentication failed",
            Some("08") => "connection lost",
            Some("40") => "conflict with a concurrent write",
            Some("XX" | "58") => "the database is damaged or its disk failed",
            _ => "request rejected",
        },
    }
}

/// Returns the SQLSTATE of an error of the database.
fn sql_state(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(|code| code.into_owned())
}

fn state_is(error: &sqlx::Error, is: impl FnOnce(&str) -> bool) -> bool {
    sql_state(error).is_some_and(|state| is(&state))
}

/// True if the disk of the database is full.
pub(crate) fn lacks_space(error: &sqlx::Error) -> bool {
    state_is(error, |state| state == "53100")
}

/// True if the transaction was aborted in favor of a concurrent one and can be retried.
pub(crate) fn is_retryable(error: &sqlx::Error) -> bool {
    state_is(error, |state| matches!(state, "40001" | "40P01"))
}

/// True if waiting for a lock timed out.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    state_is(error, |state| state == "55P03")
}

/// True if the database cannot store a value: a name or UID that is too long for an index.
pub(crate) fn is_invalid_value(error: &sqlx::Error) -> bool {
    state_is(error, |state| state.starts_with("22") || state.starts_with("54"))
}

/// True if an object to be created already exists.
pub(crate) fn is_duplicate(error: &sqlx::Error) -> bool {
    state_is(error, |state| matches!(state, "42P07" | "42710" | "23505"))
}

/// True if the operation may or may not have been executed.
pub(crate) fn is_in_doubt(error: &sqlx::Error) -> bool {
    // Servers that respond with these codes have not executed it.
    is_connection_lost(error) && !state_is(error, |state| matches!(state, "25006" | "57P03" | "53300"))
}

/// True if the connection is unusable.
pub(crate) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(_) => state_is(error, |state| {
            matches!(
                state,
                "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "25P03" | "25P04" | "40003" | "53300"
            ) || state.starts_with("08")
        }),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}

/// Converts the error of a failed read. A lost connection was logged before.
pub(super) fn store_error(error: sqlx::Error) -> StoreError {
    if matches!(error, sqlx::Error::PoolClosed) {
        return StoreError::Closed;
    }
    if !is_connection_lost(&error) {
        tracing::error!(error = log_text(&error), "cannot read from the database");
    }
    StoreError::Unavailable(reason(&error))
}
