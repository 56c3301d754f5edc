//! Parsers for flags that select a PostgreSQL database, shared by servers and data commands.

use portico_server::PostgresSettings;

/// Parses a PostgreSQL URL.
///
/// # Errors
/// Returns an error if the URL is invalid. The message does not repeat the password in the URL.
pub(crate) fn url(text: &str) -> Result<PostgresSettings, String> {
    PostgresSettings::new(text).map_err(|error| error.to_string())
}

/// Adds the password in `content`, without the line ending, to the settings.
///
/// # Errors
/// Returns an error if the password is not valid UTF-8.
pub(crate) fn with_password(
    settings: PostgresSettings,
    content: Vec<u8>,
) -> Result<PostgresSettings, &'static str> {
    let password = String::from_utf8(content).map_err(|_| "not valid UTF-8")?;
    Ok(settings.password(password.trim_end_matches(['\r', '\n'])))
}
