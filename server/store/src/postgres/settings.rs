//! Settings of a PostgreSQL database and its connections.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The URL of the database is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidUrl(String);

/// Settings of a store in a PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PostgresSettings {
    options: PgConnectOptions,
    /// Maximum number of connections that load resources and serve exact reads and history.
    pub read_connections: u32,
    /// Maximum wait for the database at the start.
    pub connect_timeout: Duration,
    /// Timeout of one statement, after which its connection is closed.
    pub statement_timeout: Duration,
    /// True if a pooler assigns connections per transaction.
    pub transaction_pooler: bool,
    /// Interval of polls for commits of other processes that were not notified.
    pub poll_interval: Duration,
    /// Time between the compaction and the deletion of past states: a process that is behind by less misses none.
    pub sweep_delay: Duration,
    /// Maximum bytes of values that are read at once from commits of other processes, unless one commit is larger.
    pub follow_bytes: usize,
}

impl PostgresSettings {
    /// Parses `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=...`, with defaults for other settings.
    ///
    /// # Errors
    /// [`InvalidUrl`].
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(InvalidUrl("the URL must start with postgres://".to_owned()));
        }
        let options = PgConnectOptions::from_str(url).map_err(|error| match error {
            sqlx::Error::Configuration(error) => InvalidUrl(error.to_string()),
            error => InvalidUrl(error.to_string()),
        })?;
        // Like libpq: if a root certificate is given, the server certificate is verified.
        let options = match options.get_ssl_mode() {
            PgSslMode::Require if names_root(url) => options.ssl_mode(PgSslMode::VerifyCa),
            _ => options,
        };
        Ok(Self {
            options: options.application_name("portico").disable_statement_logging(),
            read_connections: 4,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(10),
            transaction_pooler: false,
            poll_interval: Duration::from_millis(100),
            sweep_delay: Duration::from_secs(10),
            follow_bytes: 8 << 20,
        })
    }

    /// Sets a password that is not part of the URL.
    #[must_use]
    pub fn password(self, password: &str) -> Self {
        Self { options: self.options.password(password), ..self }
    }

    pub(super) fn options(&self) -> PgConnectOptions {
        match self.transaction_pooler {
            // Poolers reject unknown parameters.
            true => self.options.clone().statement_cache_capacity(0).extra_float_digits(None),
            false => self.options.clone(),
        }
    }

    /// True if a password is set, and the database is neither on this machine's loopback interface nor behind a Unix socket.
    pub(super) fn has_remote_password(&self) -> bool {
        let host = self.options.get_host();
        let is_loopback = host.eq_ignore_ascii_case("localhost")
            || host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let is_local = is_loopback || self.options.get_socket().is_some();
        // Replaces host and user, which may not be valid in a URL.
        let url = self.options.clone().host("localhost").username("user").to_url_lossy();
        !is_local && url.password().is_some()
    }

    /// Returns the address for display, without user and password.
    pub(super) fn place(&self) -> String {
        let options = &self.options;
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        match options.get_socket() {
            Some(socket) => format!("postgres://{}/{database}", socket.display()),
            None => format!("postgres://{}:{}/{database}", options.get_host(), options.get_port()),
        }
    }
}

/// True if a URL or the environment names a root certificate, as sqlx reads both.
fn names_root(url: &str) -> bool {
    const NAMES: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
    let (_, query) = url.split_once('?').unwrap_or_default();
    let query = query.split('#').next().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes());
    names.any(|(name, _)| NAMES.contains(&&*name)) || std::env::var_os("PGSSLROOTCERT").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_displayed_without_the_password() {
        let settings =
            PostgresSettings::new("postgres://u:secret@db.example:5433/portico?sslmode=require").unwrap();
        assert_eq!(settings.place(), "postgres://db.example:5433/portico");
        let socket = PostgresSettings::new("postgres://u@%2Frun%2Fpg/portico").unwrap();
        assert_eq!(socket.place(), "postgres:///run/pg/portico");
        for (url, verifies) in [
            ("postgres://u@h/d?sslmode=require&sslrootcert=/ca.crt", true),
            ("postgres://u@h/d?sslrootcert=/ca.crt&sslmode=require", true),
            ("postgres://u@h/d?ssl-mode=require&ssl-ca=/ca.crt", true),
            ("postgres://u@h/d?sslmode=require&ssl%2Droot-cert=/ca.crt", true),
            ("postgres://u@h/d?sslmode=require", false),
        ] {
            let mode = PostgresSettings::new(url).unwrap().options.get_ssl_mode();
            assert_eq!(matches!(mode, PgSslMode::VerifyCa), verifies, "{url}");
        }
        for (url, is_remote) in [
            ("postgres://u:secret@db.example/d", true),
            ("postgres://u:secret@192.0.2.1/d", true),
            ("postgres://u:secret@db.example/d?host=fd00::5", true),
            ("postgres://u:secret@127.0.0.2/d", false),
            ("postgres://u:secret@[::1]/d", false),
            ("postgres://u:secret@localhost/d", false),
            ("postgres://u:secret@%2Frun%2Fpg/d", false),
        ] {
            assert_eq!(PostgresSettings::new(url).unwrap().has_remote_password(), is_remote, "{url}");
        }
        for wrong in ["", "mysql://a/b", "postgres://a:b:c/d", "postgres://a/b?sslmode=maybe"] {
            assert!(PostgresSettings::new(wrong).is_err(), "{wrong}");
        }
    }
}
