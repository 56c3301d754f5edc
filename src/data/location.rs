//! The location of stored data, with the same flags for all commands: a data folder, a PostgreSQL database, an etcd, or a running control
//! service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};
use portico_gostd::os::error_text;
use portico_server::data::{self, CopySource, EtcdSource, PostgresSource, SqliteSource};
use portico_server::{EtcdSettings, PostgresSettings};

use super::failure::Failure;
use super::remote::{Remote, Server};
use crate::etcd_flags::EtcdFlags;

const KUBECONFIG: &str = "--kubeconfig";

/// Ids of the flags that name a location, and the flags.
const NAMES: [(&str, &str); 4] = [
    ("data_dir", "--data-dir"),
    ("database_url", "--database-url"),
    ("etcd_servers", "--etcd-servers"),
    ("kubeconfig", KUBECONFIG),
];

/// Ids of the flags that apply to `--kubeconfig` only, and the flags.
const SERVER_FLAGS: [(&str, &str); 2] = [("server", "--server"), ("context", "--context")];

/// Flags of a location, and those of [`NAMES`] that the command line contains: these take precedence over variables.
#[derive(Debug)]
pub(super) struct Location {
    flags: Flags,
    named: Vec<&'static str>,
    /// Flag that selects a server of a kubeconfig, if the command line contains one.
    server_flag: Option<&'static str>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Data location")]
struct Flags {
    /// Data folder with a SQLite database
    #[arg(long, value_name = "DIR", default_value = "./portico-data", env = "PORTICO_DATA_DIR")]
    data_dir: PathBuf,
    /// PostgreSQL database: `postgres://USER@HOST:PORT/DATABASE`
    #[arg(long, value_name = "URL", value_parser = postgres, env = "PORTICO_DATABASE_URL", hide_env_values = true)]
    database_url: Option<PostgresSettings>,
    /// File with the password for --database-url
    #[arg(long, value_name = "FILE", env = "PORTICO_DATABASE_PASSWORD_FILE")]
    database_password_file: Option<PathBuf>,
    /// A connection pooler in transaction mode is in front of PostgreSQL
    #[arg(long, env = "PORTICO_DATABASE_TRANSACTION_POOLER")]
    database_transaction_pooler: bool,
    #[command(flatten)]
    etcd: EtcdFlags,
    /// Kubeconfig of a running control service, which may be on another machine
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of --kubeconfig
    #[arg(long, default_value = crate::control_service::CONTROL_CONTEXT)]
    context: String,
    /// Address to connect to instead of the one in --kubeconfig
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
    /// Encryption configuration of the server, where values must be decrypted: in etcd and for past revisions
    #[arg(long, value_name = "FILE", env = "PORTICO_ENCRYPTION_PROVIDER_CONFIG")]
    encryption_provider_config: Option<PathBuf>,
}

/// A location.
#[derive(Debug)]
pub(super) enum Place<'l> {
    Folder(&'l Path),
    Postgres(Box<PostgresSettings>),
    Etcd(EtcdSettings),
    Server(Server<'l>),
}

impl Args for Location {
    fn augment_args(command: clap::Command) -> clap::Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Flags::augment_args_for_update(command)
    }
}

impl FromArgMatches for Location {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_flag = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let named = NAMES.iter().filter(|(id, _)| is_flag(id)).map(|(_, flag)| *flag).collect();
        let server_flag = SERVER_FLAGS.iter().find(|(id, _)| is_flag(id)).map(|(_, flag)| *flag);
        Ok(Self { flags: Flags::from_arg_matches(matches)?, named, server_flag })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Location {
    /// The location that a flag names, or else a variable, or else the default data folder.
    pub(super) fn place(&self) -> Result<Place<'_>, Failure> {
        if let Some(flag) = self.server_flag.filter(|_| self.flags.kubeconfig.is_none()) {
            return Err(Failure::WithoutKubeconfig(flag));
        }
        self.place_among(&self.named)
    }

    fn place_among(&self, named: &[&'static str]) -> Result<Place<'_>, Failure> {
        let flags = &self.flags;
        let is_meant = |flag, is_set| if named.is_empty() { is_set } else { named.contains(&flag) };
        let url = flags.database_url.as_ref().filter(|_| is_meant("--database-url", true));
        let has_etcd = is_meant("--etcd-servers", !flags.etcd.etcd_servers.is_empty());
        match named {
            [first, second, ..] => return Err(two_places(first, second)),
            [] if url.is_some() && has_etcd => {
                return Err(two_places("PORTICO_DATABASE_URL", "PORTICO_ETCD_SERVERS"));
            }
            _ => {}
        }
        if let Some(kubeconfig) = flags.kubeconfig.as_deref().filter(|_| is_meant(KUBECONFIG, false)) {
            return Ok(Place::Server(self.server(kubeconfig)));
        }
        if let Some(url) = url {
            return Ok(Place::Postgres(Box::new(self.postgres(url)?)));
        }
        flags.etcd.check().map_err(Failure::Request)?;
        let etcd = if has_etcd { flags.etcd.settings(read)? } else { None };
        Ok(etcd.map_or(Place::Folder(&flags.data_dir), Place::Etcd))
    }

    /// The location as [`Self::place`], except that `--kubeconfig` may name the control service that serves a data folder.
    pub(super) fn place_of_data(&self) -> Result<Place<'_>, Failure> {
        match self.data_flag().is_some() || self.flags.kubeconfig.is_none() {
            true => self.place_among(&self.named_data()),
            false => self.place(),
        }
    }

    /// The first flag that names a location.
    pub(super) fn flag(&self) -> Option<&'static str> {
        self.named.first().copied()
    }

    /// The first flag other than `--kubeconfig` that names a location.
    pub(super) fn data_flag(&self) -> Option<&'static str> {
        self.named_data().first().copied()
    }

    fn named_data(&self) -> Vec<&'static str> {
        self.named.iter().copied().filter(|flag| *flag != KUBECONFIG).collect()
    }

    /// `--kubeconfig`.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.flags.kubeconfig.as_deref()
    }

    /// The control service of a kubeconfig, by `--context` and `--server`.
    pub(super) fn server<'l>(&'l self, kubeconfig: &'l Path) -> Server<'l> {
        Server { kubeconfig, context: &self.flags.context, address: self.flags.server.as_deref() }
    }

    /// `--encryption-provider-config`.
    pub(super) fn encryption(&self) -> Option<&Path> {
        self.flags.encryption_provider_config.as_deref()
    }

    /// Files of `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile`, added to the settings of an etcd that a URL names.
    pub(super) fn with_etcd_files(&self, settings: EtcdSettings) -> Result<EtcdSettings, Failure> {
        self.flags.etcd.files.add_to(settings, read)
    }

    fn postgres(&self, url: &PostgresSettings) -> Result<PostgresSettings, Failure> {
        let mut settings = url.clone();
        settings.transaction_pooler = self.flags.database_transaction_pooler;
        with_password(settings, "--database-password-file", self.flags.database_password_file.as_deref())
    }

    /// Opens the data for reading.
    pub(super) async fn source(&self) -> Result<Arc<dyn CopySource>, Failure> {
        let encryption = self.encryption();
        Ok(match self.place()? {
            Place::Server(server) => Arc::new(Remote::new(&server)?),
            Place::Etcd(settings) => {
                Arc::new(EtcdSource::open(&settings, data::known(encryption).await?).await?)
            }
            Place::Postgres(settings) => {
                Arc::new(PostgresSource::open(*settings, data::opener(encryption)?).await?)
            }
            Place::Folder(folder) => {
                Arc::new(SqliteSource::open(&data::database_in(folder), data::opener(encryption)?).await?)
            }
        })
    }
}

/// Parses the URL of a PostgreSQL database.
pub(super) fn postgres(url: &str) -> Result<PostgresSettings, String> {
    PostgresSettings::new(url).map_err(|error| error.to_string())
}

/// Adds the password of a file.
pub(super) fn with_password(
    settings: PostgresSettings,
    flag: &'static str,
    file: Option<&Path>,
) -> Result<PostgresSettings, Failure> {
    let Some(path) = file else { return Ok(settings) };
    let invalid = |reason: &str| Failure::Request(format!("{flag} {}: {reason}", path.display()));
    let password = String::from_utf8(read(flag, path)?).map_err(|_| invalid("not UTF-8"))?;
    Ok(settings.password(password.trim_end_matches(['\r', '\n'])))
}

/// Reads the file of a flag.
fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, Failure> {
    portico_kit::config_file::read(path)
        .map_err(|error| Failure::Request(format!("{flag} {}: {}", path.display(), error_text(&error))))
}

/// Error for two locations.
pub(super) fn two_places(first: &str, second: &str) -> Failure {
    Failure::Usage(format!("{first} and {second} name two locations"))
}
