//! Flags that select a location of stored data, and checks that each flag applies to the selected location.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use portico_server::PostgresSettings;

use crate::data::failure::Failure;
use crate::etcd_flags::EtcdFlags;
use crate::postgres_flags;

pub(super) const DATA_DIR: &str = "--data-dir";
pub(super) const DATABASE_URL: &str = "--database-url";
pub(super) const ETCD_SERVERS: &str = "--etcd-servers";
pub(super) const KUBECONFIG: &str = "--kubeconfig";
const ENCRYPTION: &str = "--encryption-provider-config";

/// Flags that name the TLS files for etcd.
pub(crate) const ETCD_FILES: [&str; 3] = ["--etcd-cafile", "--etcd-certfile", "--etcd-keyfile"];
/// Flags that select a running control service.
pub(crate) const SERVER: [&str; 3] = [KUBECONFIG, "--context", "--server"];

/// All location flags, each with the flag that selects the kind of location to which it applies.
const FLAGS: [(&str, &str); 13] = [
    (DATA_DIR, DATA_DIR),
    (DATABASE_URL, DATABASE_URL),
    ("--database-password-file", DATABASE_URL),
    ("--database-transaction-pooler", DATABASE_URL),
    (ETCD_SERVERS, ETCD_SERVERS),
    ("--etcd-prefix", ETCD_SERVERS),
    (ETCD_FILES[0], ETCD_SERVERS),
    (ETCD_FILES[1], ETCD_SERVERS),
    (ETCD_FILES[2], ETCD_SERVERS),
    (KUBECONFIG, KUBECONFIG),
    (SERVER[1], KUBECONFIG),
    (SERVER[2], KUBECONFIG),
    (ENCRYPTION, ENCRYPTION),
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Data location")]
pub(super) struct Flags {
    /// Data folder with a SQLite database
    #[arg(long, value_name = "DIR", default_value = "./portico-data", env = "PORTICO_DATA_DIR")]
    pub(super) data_dir: PathBuf,
    /// PostgreSQL database: `postgres://USER@HOST:PORT/DATABASE`
    #[arg(long, value_name = "URL", value_parser = postgres_flags::url, env = "PORTICO_DATABASE_URL", hide_env_values = true)]
    pub(super) database_url: Option<PostgresSettings>,
    /// File with the password for --database-url
    #[arg(long, value_name = "FILE", env = "PORTICO_DATABASE_PASSWORD_FILE")]
    pub(super) database_password_file: Option<PathBuf>,
    /// Support a connection pooler in transaction mode in front of PostgreSQL
    #[arg(long, env = "PORTICO_DATABASE_TRANSACTION_POOLER")]
    pub(super) database_transaction_pooler: bool,
    #[command(flatten)]
    pub(super) etcd: EtcdFlags,
    /// Kubeconfig of a running control service, which may be on another machine
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of --kubeconfig
    #[arg(long, default_value = crate::control_service::CONTROL_CONTEXT)]
    pub(super) context: String,
    /// Address to connect to instead of the address in --kubeconfig
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) server: Option<String>,
    /// Encryption configuration of the server, needed to decrypt values in etcd and of past revisions
    #[arg(long, value_name = "FILE", env = "PORTICO_ENCRYPTION_PROVIDER_CONFIG")]
    pub(super) encryption_provider_config: Option<PathBuf>,
}

/// Location flags on the command line. Flags set by environment variables are not included: a flag that selects another location
/// overrides them.
#[derive(Debug)]
pub(super) struct CommandLineFlags(Vec<&'static str>);

impl CommandLineFlags {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        let id = |flag: &str| flag.trim_start_matches('-').replace('-', "_");
        let is_on_command_line =
            |flag: &&str| matches.value_source(&id(flag)) == Some(ValueSource::CommandLine);
        Self(FLAGS.iter().map(|(flag, _)| *flag).filter(is_on_command_line).collect())
    }

    pub(super) fn first(&self) -> Option<&'static str> {
        self.0.first().copied()
    }

    /// Returns the flags on the command line that select a location.
    pub(super) fn selecting_flags(&self) -> impl Iterator<Item = &'static str> {
        let names = [DATA_DIR, DATABASE_URL, ETCD_SERVERS, KUBECONFIG];
        self.0.iter().copied().filter(move |flag| names.contains(flag))
    }

    /// Refuses flags that neither apply to the location selected by the flag `name` nor are in `also_used`.
    pub(super) fn refuse_unused(&self, name: &str, also_used: &[&str]) -> Result<(), Failure> {
        let applies = |flag: &str, owner: &str| match flag {
            ENCRYPTION => name != KUBECONFIG,
            _ => owner == name,
        };
        let unexplained = FLAGS.iter().filter(|(flag, _)| self.0.contains(flag) && !also_used.contains(flag));
        match unexplained.into_iter().find(|(flag, owner)| !applies(flag, owner)) {
            Some((flag, owner)) => Err(unused_flag(flag, owner)),
            None => Ok(()),
        }
    }
}

/// Returns the error for a flag that does not apply to the location.
fn unused_flag(flag: &str, owner: &'static str) -> Failure {
    match owner {
        ENCRYPTION => Failure::Hinted(
            format!("{flag} does not apply to {KUBECONFIG}"),
            "the server decrypts values with its own configuration; remove the flag",
        ),
        KUBECONFIG => Failure::Hinted(
            format!("{flag} requires {KUBECONFIG}"),
            "--kubeconfig DIR/admin.kubeconfig names the control service of a data folder",
        ),
        _ => Failure::Usage(format!("{flag} requires {owner}")),
    }
}
