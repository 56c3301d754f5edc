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
use super::remote::{Remote, Server};
use crate::postgres_flags;
use flags::{DATA_DIR, DATABASE_URL, ETCD_SERVERS, Flags, GivenFlags, KUBECONFIG};
pub(super) use flags::{ETCD_FILES, SERVER};

/// Values of the location flags, and the flags on the command line, which take precedence over environment variables.
#[derive(Debug)]
pub(super) struct Location {
    flags: Flags,
    given: GivenFlags,
}

/// Location of stored data.
#[derive(Debug)]
pub(super) enum Place<'l> {
    Folder(&'l Path),
    Postgres(Box<PostgresSettings>),
    Etcd(EtcdSettings),
    Server(Server<'l>),
}

impl Place<'_> {
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
        Ok(Self { flags: Flags::from_arg_matches(matches)?, given: GivenFlags::of(matches) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Location {
    /// Returns the location that a flag selects, or else an environment variable, or else the default data folder.
    pub(super) fn place(&self) -> Result<Place<'_>, Failure> {
        let named: Vec<_> = self.given.names().collect();
        let place = self.place_among(&named)?;
        self.refuse_unused(place.flag(), &[])?;
        Ok(place)
    }

    fn place_among(&self, named: &[&'static str]) -> Result<Place<'_>, Failure> {
        let flags = &self.flags;
        let is_meant = |flag, is_set| if named.is_empty() { is_set } else { named.contains(&flag) };
        let url = flags.database_url.as_ref().filter(|_| is_meant(DATABASE_URL, true));
        let has_etcd = is_meant(ETCD_SERVERS, !flags.etcd.etcd_servers.is_empty());
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
        flags.etcd.check().map_err(Failure::Usage)?;
        let etcd = if has_etcd { flags.etcd.settings(read)? } else { None };
        Ok(etcd.map_or(Place::Folder(&flags.data_dir), Place::Etcd))
    }

    /// Returns the location like [`Self::location`], except that `--kubeconfig` may also name the control service that serves a
    /// data folder. Accepts the flags in `also_used`, which the caller needs for other purposes.
    pub(super) fn place_of_data(&self, also_used: &[&str]) -> Result<Place<'_>, Failure> {
        let named: Vec<_> = self.given.names().filter(|flag| *flag != KUBECONFIG).collect();
        let place = match named.is_empty() && self.flags.kubeconfig.is_some() {
            true => self.place_among(&[KUBECONFIG])?,
            false => self.place_among(&named)?,
        };
        let server: &[&str] = match place {
            Place::Folder(_) => &SERVER,
            Place::Postgres(_) | Place::Etcd(_) if self.flags.kubeconfig.is_some() => {
                return Err(two_places(place.flag(), KUBECONFIG));
            }
            _ => &[],
        };
        self.refuse_unused(place.flag(), &[also_used, server].concat())?;
        Ok(place)
    }

    /// Refuses flags that neither apply to the location selected by the flag `name` nor are in `also_used`.
    pub(super) fn refuse_unused(&self, name: &str, also_used: &[&str]) -> Result<(), Failure> {
        self.given.refuse_unused(name, also_used)
    }

    /// Returns the first flag on the command line that selects a location.
    pub(super) fn name(&self) -> Option<&'static str> {
        self.given.names().next()
    }

    /// Returns the first location flag on the command line.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        self.given.first()
    }

    /// Returns the value of `--kubeconfig`.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.flags.kubeconfig.as_deref()
    }

    /// Returns the control service that `kubeconfig`, `--context` and `--server` select.
    pub(super) fn server<'l>(&'l self, kubeconfig: &'l Path) -> Server<'l> {
        Server { kubeconfig, context: &self.flags.context, address: self.flags.server.as_deref() }
    }

    /// Returns the value of `--encryption-provider-config`.
    pub(super) fn encryption(&self) -> Option<&Path> {
        self.flags.encryption_provider_config.as_deref()
    }

    /// Adds the TLS files of `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile` to settings parsed from an etcd URL.
    pub(super) fn with_etcd_files(&self, settings: EtcdSettings) -> Result<EtcdSettings, Failure> {
        self.flags.etcd.files.add_to(settings, read)
    }

    fn postgres(&self, url: &PostgresSettings) -> Result<PostgresSettings, Failure> {
        let mut settings = url.clone();
        settings.transaction_pooler = self.flags.database_transaction_pooler;
        with_password(settings, "--database-password-file", self.flags.database_password_file.as_deref())
    }

    /// Opens the data at the location for reading.
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

/// Adds the password in `file`, the value of `flag`, to the settings.
pub(super) fn with_password(
    settings: PostgresSettings,
    flag: &'static str,
    file: Option<&Path>,
) -> Result<PostgresSettings, Failure> {
    let Some(path) = file else { return Ok(settings) };
    postgres_flags::with_password(settings, read(flag, path)?)
        .map_err(|why| Failure::Usage(format!("{flag} {}: {why}", path.display())))
}

/// Reads the file that a flag names.
fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, Failure> {
    portico_kit::config_file::read(path)
        .map_err(|error| Failure::Usage(format!("{flag} {}: {}", path.display(), error_text(&error))))
}

/// Returns the error for a command line that names two locations.
pub(super) fn two_places(first: &str, second: &str) -> Failure {
    Failure::Hinted(
        format!("{first} and {second} name two locations"),
        "name one: --data-dir, --database-url, --etcd-servers or --kubeconfig",
    )
}
