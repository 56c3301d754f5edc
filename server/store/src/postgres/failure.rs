//! What an error of the database is to whoever asked: a sentence of ours, by SQLSTATE. PostgreSQL's own words are for the log.

use portico_gostd::os::error_text;

use crate::error::StoreError;

/// Why the database did not do what it was asked.
pub(crate) fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(_) => of_state(&state(error).unwrap_or_default()).to_owned(),
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

/// The text for the log: the sentence, and of an error of PostgreSQL its message and code.
pub(crate) fn logged(error: &sqlx::Error) -> String {
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

fn of_state(state: &str) -> &'static str {
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

/// The SQLSTATE of an error of the database.
fn state(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(|code| code.into_owned())
}

fn state_is(error: &sqlx::Error, is: impl FnOnce(&str) -> bool) -> bool {
    state(error).is_some_and(|state| is(&state))
}

/// Whether the disk of the database is full.
pub(crate) fn lacks_space(error: &sqlx::Error) -> bool {
    state_is(error, |state| state == "53100")
}

/// Whether the transaction was given up in favour of another one: it is to be tried again, and will do nothing else then.
pub(crate) fn is_retried(error: &sqlx::Error) -> bool {
    state_is(error, |state| matches!(state, "40001" | "40P01"))
}

/// Whether others have held what was to be locked for too long.
pub(crate) fn is_locked(error: &sqlx::Error) -> bool {
    state_is(error, |state| state == "55P03")
}

/// Whether what was to be written is nothing that the database can hold: a name or a uid that is too long for an index.
pub(crate) fn is_unacceptable(error: &sqlx::Error) -> bool {
    state_is(error, |state| state.starts_with("22") || state.starts_with("54"))
}

/// Whether something was to be made that is there already.
pub(crate) fn exists(error: &sqlx::Error) -> bool {
    state_is(error, |state| matches!(state, "42P07" | "42710" | "23505"))
}

/// Whether what was under way may have been done or not.
pub(crate) fn is_in_doubt(error: &sqlx::Error) -> bool {
    // Somebody who answers so has done nothing.
    is_lost(error) && !state_is(error, |state| matches!(state, "25006" | "57P03" | "53300"))
}

/// Whether the connection is of no more use.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
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

/// What a failed read is to the caller. A connection that is lost was logged where it was.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    if matches!(error, sqlx::Error::PoolClosed) {
        return StoreError::Closed;
    }
    if !is_lost(&error) {
        tracing::error!(error = logged(&error), "cannot read from the database");
    }
    StoreError::Unavailable(reason(&error))
}
