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
        sqlx::Error::Io(error) => format!("the connection to it is lost: {}", error_text(error)),
        sqlx::Error::Tls(error) => format!("TLS: {error}"),
        sqlx::Error::PoolTimedOut => "it did not answer in time".to_owned(),
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => "the connection to it is lost".to_owned(),
        sqlx::Error::Protocol(_) => "it does not speak PostgreSQL's protocol".to_owned(),
        sqlx::Error::RowNotFound => "its tables hold no store".to_owned(),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => "a stored row cannot be read".to_owned(),
        _ => "it refused the request".to_owned(),
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
        "53200" => "memory ran out",
        "53300" => "it has no connection to spare",
        "25006" => "it is read-only",
        "57P03" => "it is starting or shutting down",
        "57P01" | "57P02" => "it was shut down",
        "57014" | "25P03" | "25P04" => "the statement took too long",
        "55P03" => "others hold its tables for too long",
        "3D000" => "there is no such database",
        "42P01" | "42703" | "3F000" => "its tables are not those of a store",
        "42501" => "the user may not do that",
        _ => match state.get(..2) {
            Some("22" | "54") => "a name or a uid is too long for it",
            Some("28") => "it does not let the user in",
            Some("08") => "the connection to it is lost",
            Some("40") => "others wrote at the same time",
            Some("XX" | "58") => "it is damaged, or its disk failed",
            _ => "it refused the request",
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
