//! Where a store is: a data folder, a PostgreSQL database, an etcd, or a control service that serves it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use portico_gostd::os::error_text;
use portico_server::data::{self, CopySource, EtcdSource, PostgresSource, SqliteSource};
use portico_server::{EtcdSettings, PostgresSettings};

use super::failure::Failure;
use super::remote::Remote;
use crate::etcd_flags::EtcdFlags;

/// What says where a store is: ids and flags.
const PLACES: [(&str, &str); 4] = [
    ("data_dir", "--data-dir"),
    ("database_url", "--database-url"),
    ("etcd_servers", "--etcd-servers"),
    ("kubeconfig", "--kubeconfig"),
];

/// A data folder, a PostgreSQL database, or an etcd.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// The folder of the database.
    #[arg(long, value_name = "DIR", default_value = "./portico-data", env = "PORTICO_DATA_DIR")]
    pub(super) data_dir: PathBuf,
    /// The PostgreSQL database, in the place of a folder: `postgres://USER@HOST:PORT/DATABASE`.
    #[arg(long, value_name = "URL", value_parser = postgres, env = "PORTICO_DATABASE_URL", hide_env_values = true)]
    pub(super) database_url: Option<PostgresSettings>,
    /// The password for --database-url, from a file.
    #[arg(long, value_name = "FILE", env = "PORTICO_DATABASE_PASSWORD_FILE")]
    database_password_file: Option<PathBuf>,
    /// A pooler stands before PostgreSQL that hands connections on after each transaction.
    #[arg(long, env = "PORTICO_DATABASE_TRANSACTION_POOLER")]
    database_transaction_pooler: bool,
    #[command(flatten)]
    etcd: EtcdFlags,
}

/// A place to read from.
#[derive(Debug, clap::Args)]
pub(super) struct From {
    #[command(flatten)]
    pub(super) place: Place,
    /// Ask the control service of this kubeconfig instead: it may be elsewhere, and opens what is sealed itself.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of --kubeconfig.
    #[arg(long, default_value = "control")]
    context: String,
    /// What values are sealed with. They stay sealed; it is needed where a sealed object was written anew after the revision, and of
    /// an etcd, whose sealed values mean something there alone: they are sealed anew.
    #[arg(long, value_name = "FILE", env = "PORTICO_ENCRYPTION_PROVIDER_CONFIG")]
    encryption_provider_config: Option<PathBuf>,
}

pub(super) fn postgres(url: &str) -> Result<PostgresSettings, String> {
    PostgresSettings::new(url).map_err(|error| error.to_string())
}

/// Settings with the password of a file.
pub(super) fn with_password(
    settings: PostgresSettings,
    flag: &'static str,
    file: Option<&Path>,
) -> Result<PostgresSettings, Failure> {
    let Some(path) = file else { return Ok(settings) };
    let asked = |reason: &str| Failure::Asked(format!("{flag} {}: {reason}", path.display()));
    let password = String::from_utf8(read(flag, path)?).map_err(|_| asked("it is not UTF-8"))?;
    Ok(settings.password(password.trim_end_matches(['\r', '\n'])))
}

/// What a file holds that a flag names.
pub(super) fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, Failure> {
    portico_kit::config_file::read(path)
        .map_err(|error| Failure::Asked(format!("{flag} {}: {}", path.display(), error_text(&error))))
}

/// Two that name a place each.
pub(super) fn conflict(first: &str, second: &str) -> clap::Error {
    let text = format!("{first} and {second} name a place each: give one of them\n");
    clap::Error::raw(ErrorKind::ArgumentConflict, text)
}

impl Place {
    /// A place that a flag names is meant before those that variables name. Two of a kind are refused.
    pub(super) fn settle(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let is_flag = |id: &str| {
            matches.try_contains_id(id).unwrap_or_default()
                && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let mut flags = PLACES.iter().filter(|(id, _)| is_flag(id)).map(|(_, flag)| *flag);
        let Some(flag) = flags.next() else {
            return match self.database_url.is_some() && !self.etcd.etcd_servers.is_empty() {
                true => Err(conflict("PORTICO_DATABASE_URL", "PORTICO_ETCD_SERVERS")),
                false => Ok(()),
            };
        };
        if let Some(other) = flags.next() {
            return Err(conflict(flag, other));
        }
        if flag != "--database-url" {
            self.database_url = None;
        }
        if flag != "--etcd-servers" {
            self.etcd.etcd_servers.clear();
        }
        Ok(())
    }

    /// The etcd, if that is meant.
    pub(super) fn etcd(&self) -> Result<Option<EtcdSettings>, Failure> {
        self.etcd.check().map_err(Failure::Asked)?;
        self.etcd.settings(read)
    }

    /// The PostgreSQL database, if that is meant.
    pub(super) fn postgres(&self) -> Result<Option<PostgresSettings>, Failure> {
        let Some(mut settings) = self.database_url.clone() else { return Ok(None) };
        settings.transaction_pooler = self.database_transaction_pooler;
        let file = self.database_password_file.as_deref();
        with_password(settings, "--database-password-file", file).map(Some)
    }
}

impl From {
    /// What is stored there.
    pub(super) async fn source(&self) -> Result<Arc<dyn CopySource>, Failure> {
        if let Some(kubeconfig) = &self.kubeconfig {
            return Ok(Arc::new(Remote::new(kubeconfig, &self.context)?));
        }
        let encryption = self.encryption_provider_config.as_deref();
        if let Some(settings) = self.place.etcd()? {
            return Ok(Arc::new(EtcdSource::open(&settings, data::known(encryption).await?).await?));
        }
        let seal = data::opener(encryption)?;
        Ok(match self.place.postgres()? {
            Some(settings) => Arc::new(PostgresSource::open(settings, seal).await?),
            None => Arc::new(SqliteSource::open(&data::database_in(&self.place.data_dir), seal).await?),
        })
    }
}
