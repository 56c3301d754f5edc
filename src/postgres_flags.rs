//! Values of flags that select a PostgreSQL database, shared by the server and the data verbs.

use portico_server::PostgresSettings;

/// Parses a URL.
///
/// # Errors
/// If the URL is invalid; the message does not repeat its password.
pub(crate) fn url(text: &str) -> Result<PostgresSettings, String> {
    PostgresSettings::new(text).map_err(|error| error.to_string())
}

/// Adds the password that a file contains, without the end of its line.
///
/// # Errors
/// If the password is not valid UTF-8.
pub(crate) fn with_password(
    settings: PostgresSettings,
    content: Vec<u8>,
) -> Result<PostgresSettings, &'static str> {
    let password = String::from_utf8(content).map_err(|_| "not valid UTF-8")?;
    Ok(settings.password(password.trim_end_matches(['\r', '\n'])))
}
