//! Location of stored data: a data folder, a PostgreSQL database, an etcd, or a running control service. All data commands select
//! the location with the same flags.

mod flags;

use std::path::Path;
use std::sync::Arc;

use clap::{ArgMatches, Args, FromArgMatches};
use portico_gostd::os::error_text;
use portico_server::data::{self, CopySource, EtcdSource, PostgresSource, SqliteSource};
use portico_server::{EtcdSettings, PostgresSettings};

use super::failure::Failure;
use super::remote::{RemoteStore, ServerFlags};
use crate::postgres_flags;
use flags::{CommandLineFlags, DATA_DIR, DATABASE_URL, ETCD_SERVERS, Flags, KUBECONFIG};
pub(super) use flags::{ETCD_FILES, SERVER};

/// Values of the location flags, and the flags on the command line, which take precedence over environment variables.
#[derive(Debug)]
pub(super) struct LocationArgs {
    flags: Flags,
    command_line: CommandLineFlags,
}

/// Location of stored data.
#[derive(Debug)]
pub(super) enum DataLocation<'l> {
    Folder(&'l Path),
    Postgres(Box<PostgresSettings>),
    Etcd(EtcdSettings),
    Server(ServerFlags<'l>),
}

impl DataLocation<'_> {
    /// Returns the flag that selects this kind of location.
    fn flag(&self) -> &'static str {
        match self {
            Self::Folder(_) => DATA_DIR,
            Self::Postgres(_) => DATABASE_URL,
            Self::Etcd(_) => ETCD_SERVERS,
            Self::Server(_) => KUBECONFIG,
        }
    }
}

impl Args for LocationArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Flags::augment_args_for_update(command)
    }
}

impl FromArgMatches for LocationArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            flags: Flags::from_arg_matches(matches)?,
            command_line: CommandLineFlags::from_matches(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl LocationArgs {
    /// Returns the location that a flag selects, or else an environment variable, or else the default data folder.
    pub(super) fn location(&self) -> Result<DataLocation<'_>, Failure> {
        let selecting: Vec<_> = self.command_line.selecting_flags().collect();
        let location = self.select_location(&selecting)?;
        self.refuse_unused(location.flag(), &[])?;
        Ok(location)
    }

    fn select_location(&self, selecting: &[&'static str]) -> Result<DataLocation<'_>, Failure> {
        let flags = &self.flags;
        let is_selected =
            |flag, is_set| if selecting.is_empty() { is_set } else { selecting.contains(&flag) };
        let url = flags.database_url.as_ref().filter(|_| is_selected(DATABASE_URL, true));
        let has_etcd = is_selected(ETCD_SERVERS, !flags.etcd.etcd_servers.is_empty());
        match selecting {
            [first, second, ..] => return Err(two_locations_error(first, second)),
            [] if url.is_some() && has_etcd => {
                return Err(two_locations_error("PORTICO_DATABASE_URL", "PORTICO_ETCD_SERVERS"));
            }
            _ => {}
        }
        if let Some(kubeconfig) = flags.kubeconfig.as_deref().filter(|_| is_selected(KUBECONFIG, false)) {
            return Ok(DataLocation::Server(self.server(kubeconfig)));
        }
        if let Some(url) = url {
            return Ok(DataLocation::Postgres(Box::new(self.postgres(url)?)));
        }
        flags.etcd.check().map_err(Failure::Usage)?;
        let etcd = if has_etcd { flags.etcd.settings(read_file)? } else { None };
        Ok(etcd.map_or(DataLocation::Folder(&flags.data_dir), DataLocation::Etcd))
    }

    /// Returns the location like [`Self::location`], except that `--kubeconfig` may also name the control service that serves a
    /// data folder. Accepts the flags in `also_used`, which the caller needs for other purposes.
    pub(super) fn location_or_server(&self, also_used: &[&str]) -> Result<DataLocation<'_>, Failure> {
        let selecting: Vec<_> =
            self.command_line.selecting_flags().filter(|flag| *flag != KUBECONFIG).collect();
        let location = match selecting.is_empty() && self.flags.kubeconfig.is_some() {
            true => self.select_location(&[KUBECONFIG])?,
            false => self.select_location(&selecting)?,
        };
        let server: &[&str] = match location {
            DataLocation::Folder(_) => &SERVER,
            DataLocation::Postgres(_) | DataLocation::Etcd(_) if self.flags.kubeconfig.is_some() => {
                return Err(two_locations_error(location.flag(), KUBECONFIG));
            }
            _ => &[],
        };
        self.refuse_unused(location.flag(), &[also_used, server].concat())?;
        Ok(location)
    }

    /// Refuses flags that neither apply to the location selected by the flag `name` nor are in `also_used`.
    pub(super) fn refuse_unused(&self, name: &str, also_used: &[&str]) -> Result<(), Failure> {
        self.command_line.refuse_unused(name, also_used)
    }

    /// Returns the first flag on the command line that selects a location.
    pub(super) fn selecting_flag(&self) -> Option<&'static str> {
        self.command_line.selecting_flags().next()
    }

    /// Returns the first location flag on the command line.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        self.command_line.first()
    }

    /// Returns the value of `--kubeconfig`.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.flags.kubeconfig.as_deref()
    }

    /// Returns the control service that `kubeconfig`, `--context` and `--server` select.
    pub(super) fn server<'l>(&'l self, kubeconfig: &'l Path) -> ServerFlags<'l> {
        ServerFlags { kubeconfig, context: &self.flags.context, address: self.flags.server.as_deref() }
    }

    /// Returns the value of `--encryption-provider-config`.
    pub(super) fn encryption(&self) -> Option<&Path> {
        self.flags.encryption_provider_config.as_deref()
    }

    /// Adds the TLS files of `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile` to settings parsed from an etcd URL.
    pub(super) fn with_etcd_files(&self, settings: EtcdSettings) -> Result<EtcdSettings, Failure> {
        self.flags.etcd.files.add_to(settings, read_file)
    }

    fn postgres(&self, url: &PostgresSettings) -> Result<PostgresSettings, Failure> {
        let mut settings = url.clone();
        settings.transaction_pooler = self.flags.database_transaction_pooler;
        with_password(settings, "--database-password-file", self.flags.database_password_file.as_deref())
    }

    /// Opens the data at the location for reading.
    pub(super) async fn source(&self) -> Result<Arc<dyn CopySource>, Failure> {
        let encryption = self.encryption();
        Ok(match self.location()? {
            DataLocation::Server(server) => Arc::new(RemoteStore::new(&server)?),
            DataLocation::Etcd(settings) => {
                Arc::new(EtcdSource::open(&settings, data::etcd_format(encryption).await?).await?)
            }
            DataLocation::Postgres(settings) => {
                Arc::new(PostgresSource::open(*settings, data::load_seal(encryption)?).await?)
            }
            DataLocation::Folder(folder) => Arc::new(
                SqliteSource::open(&data::resolve_database(folder), data::load_seal(encryption)?).await?,
            ),
        })
    }
}

/// Adds the password in `file`, the value of `flag`, to the settings.
pub(super) fn with_password(
    settings: PostgresSettings,
    flag: &'static str,
    file: Option<&Path>,
) -> Result<PostgresSettings, Failure> {
    let Some(path) = file else { return Ok(settings) };
    postgres_flags::with_password(settings, read_file(flag, path)?)
        .map_err(|reason| Failure::Usage(format!("{flag} {}: {reason}", path.display())))
}

/// Reads the file that a flag names.
fn read_file(flag: &'static str, path: &Path) -> Result<Vec<u8>, Failure> {
    portico_kit::config_file::read(path)
        .map_err(|error| Failure::Usage(format!("{flag} {}: {}", path.display(), error_text(&error))))
}

/// Returns the error for a command line that names two locations.
pub(super) fn two_locations_error(first: &str, second: &str) -> Failure {
    Failure::Hinted(
        format!("{first} and {second} name two locations"),
        "name one: --data-dir, --database-url, --etcd-servers or --kubeconfig",
    )
}
