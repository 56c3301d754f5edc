//! Settings of the control service and the facade. A value is taken from the flag, or else the `PORTICO_…` variable, or else the
//! YAML file of `--config`, or else the default.
//!
//! All settings are checked before the process listens on a port. Settings that the role does not use are also checked, but
//! have no effect.

mod admission;
mod audit;
mod authentication;
mod authorization;
mod control;
mod controllers;
mod core_api;
mod dependent_flags;
mod encryption;
mod ephemeral;
mod error;
mod file;
mod files;
mod flag_values;
mod foreign_flags;
mod history_retention;
mod kubelets;
mod manifests;
mod metrics;
mod oidc;
mod peers;
mod process;
mod proxying;
mod service_accounts;
mod serving;
mod signing;
mod store;
mod tracing;
mod value_source;
mod values;

pub(crate) use admission::Admission;
pub(crate) use audit::Audit;
pub(crate) use authentication::Authentication;
pub(crate) use authorization::Authorization;
pub(crate) use control::Control;
pub(crate) use controllers::Controllers;
pub(crate) use core_api::CoreApi;
pub(crate) use encryption::Encryption;
pub(crate) use error::SettingError;
pub(crate) use foreign_flags::{FOREIGN_FLAGS, ForeignFlag};
pub(crate) use kubelets::Kubelets;
pub(crate) use manifests::Manifests;
pub(crate) use metrics::Metrics;
pub(crate) use peers::Peers;
pub(crate) use process::{LoggingFormat, Process, ReadyFormat};
pub(crate) use proxying::Proxying;
pub(crate) use service_accounts::ServiceAccounts;
pub(crate) use serving::Serving;
pub(crate) use signing::Signing;
pub(crate) use store::StoreSettings;
pub(crate) use tracing::Tracing;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStr, Str};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

use crate::usage_error::UsageError;

/// Prefix of environment variables: the variable of `--data-dir` is `PORTICO_DATA_DIR`.
const ENV_PREFIX: &str = "PORTICO_";

/// Parts of Portico that a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Control service and facade in one process.
    AllInOne,
    /// Control service alone.
    Server,
    /// Facade alone.
    Facade,
}

/// Id of a setting, and a default that replaces the declared default.
pub(crate) type OtherDefault<'a> = (&'static str, &'a str);

/// Default of `-v` for a process that runs a program, because both write to the same standard error.
const QUIET: OtherDefault<'_> = ("verbosity", "error");

/// All settings of a server.
#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) process: Process,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
    #[command(flatten)]
    pub(crate) serving: Serving,
    #[command(flatten)]
    pub(crate) control: Control,
    #[command(flatten)]
    pub(crate) controllers: Controllers,
    #[command(flatten)]
    pub(crate) authentication: Authentication,
    #[command(flatten)]
    pub(crate) authorization: Authorization,
    #[command(flatten)]
    pub(crate) audit: Audit,
    #[command(flatten)]
    pub(crate) service_accounts: ServiceAccounts,
    #[command(flatten)]
    pub(crate) proxying: Proxying,
    #[command(flatten)]
    pub(crate) kubelets: Kubelets,
    #[command(flatten)]
    pub(crate) peers: Peers,
    #[command(flatten)]
    pub(crate) store: StoreSettings,
    #[command(flatten)]
    pub(crate) encryption: Encryption,
    #[command(flatten)]
    pub(crate) core_api: CoreApi,
    #[command(flatten)]
    pub(crate) admission: Admission,
    #[command(flatten)]
    pub(crate) signing: Signing,
    #[command(flatten)]
    pub(crate) manifests: Manifests,
    /// Program of `portico run -- CMD`, and its arguments.
    #[arg(skip)]
    pub(crate) command: Vec<OsString>,
    /// Flags of kube-apiserver that were set although they have no effect.
    #[arg(skip)]
    pub(crate) ignored: Vec<ForeignFlag>,
    /// Values of all flags, for `/flagz`.
    #[arg(skip)]
    pub(crate) flag_values: BTreeMap<String, String>,
}

/// Reads settings from flags, the environment and the configuration file. `program` is the program of `portico run -- CMD`
/// and its arguments.
///
/// # Errors
/// Returns a [`SettingError`] that names the first invalid setting.
pub(crate) fn parse(
    role: Role,
    flags: Vec<OsString>,
    program: Vec<OsString>,
) -> Result<Settings, SettingError> {
    read(command(), role, argv(flags), program).map_err(SettingError::from)
}

/// Reads settings for a program with another name, such as `kube-apiserver`, and other defaults. A repeated flag replaces
/// the earlier value.
///
/// # Errors
/// Returns [`ReadError`] if a setting is invalid, or if the command line asks for help or the version.
pub(crate) fn parse_as(defaults: &[OtherDefault<'_>], argv: Vec<OsString>) -> Result<Settings, ReadError> {
    let command = with_defaults(command(), defaults).args_override_self(true).disable_help_flag(false);
    read(command.disable_version_flag(false), Role::AllInOne, argv, Vec::new())
}

/// Reads settings from flags only, and ignores the environment of this process.
///
/// # Errors
/// Returns a [`SettingError`] that names the first invalid setting.
pub(crate) fn parse_flags(role: Role, flags: Vec<OsString>) -> Result<Settings, SettingError> {
    read(flag_command(), role, argv(flags), Vec::new()).map_err(SettingError::from)
}

/// Reason why no settings were read.
pub(crate) enum ReadError {
    /// The command line is invalid, or asks for help or the version.
    CommandLine(clap::Error),
    /// A setting is invalid.
    Setting(SettingError),
}

impl From<clap::Error> for ReadError {
    fn from(error: clap::Error) -> Self {
        Self::CommandLine(error)
    }
}

impl From<SettingError> for ReadError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}

impl From<ReadError> for SettingError {
    fn from(read_error: ReadError) -> Self {
        match read_error {
            ReadError::Setting(error) => error,
            ReadError::CommandLine(error) => {
                let UsageError { argument, message, hint, .. } = UsageError::from_clap(&error);
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                Self::new(&argument, message + &hint)
            }
        }
    }
}

fn argv(flags: Vec<OsString>) -> Vec<OsString> {
    std::iter::once(OsString::from("portico")).chain(flags).collect()
}

fn read(
    mut command: clap::Command,
    role: Role,
    mut argv: Vec<OsString>,
    program: Vec<OsString>,
) -> Result<Settings, ReadError> {
    let mut matches = command.clone().try_get_matches_from(&argv)?;
    if let Some(path) = matches.get_one::<PathBuf>("config") {
        let from_file = file::arguments(path, &command, &matches)?;
        argv.splice(1..1, from_file);
        matches = command.clone().try_get_matches_from(&argv)?;
    }
    let defaults = dependent_defaults(&matches, &program);
    if !defaults.is_empty() {
        command = with_defaults(command, &defaults);
        matches = command.clone().try_get_matches_from(argv)?;
    }
    let mut settings = Settings::from_arg_matches(&matches)?;
    settings.ignored = foreign_flags::ignored_flags(&matches)?;
    settings.flag_values = flag_values::flag_values(&command, &matches);
    settings.command = program;
    settings.check(role)?;
    settings.process.check(&settings.command)?;
    ephemeral::check(&matches)?;
    dependent_flags::check(&command, &matches)?;
    Ok(settings)
}

/// Returns the defaults that depend on other settings.
fn dependent_defaults(matches: &ArgMatches, program: &[OsString]) -> Vec<OtherDefault<'static>> {
    let mut defaults = Vec::new();
    if ephemeral::is_set(matches) {
        defaults.extend(ephemeral::DEFAULTS);
    }
    if !program.is_empty() {
        defaults.push(QUIET);
    }
    defaults
}

impl Settings {
    /// Returns the folder of generated certificates.
    pub(crate) fn cert_dir(&self) -> PathBuf {
        self.serving.cert_dir.clone().unwrap_or_else(|| self.process.data_dir.join("certs"))
    }

    /// Returns true if Portico generates the front-proxy certificate that it presents to backends, and publishes
    /// the certificate's CA.
    pub(crate) fn has_own_front_proxy(&self) -> bool {
        let is_enabled = self.proxying.own_front_proxy.unwrap_or(self.store.etcd.etcd_servers.is_empty());
        is_enabled && !self.names_front_proxy()
    }

    fn names_front_proxy(&self) -> bool {
        self.proxying.proxy_client_cert_file.is_some() || self.authentication.names_front_proxies()
    }

    /// Returns true if the control service signs the client certificate that a separate facade presents to backends. The flags
    /// `--requestheader-*` have no influence, because they configure which front proxies the facade accepts.
    pub(crate) fn is_front_proxy_signed(&self) -> bool {
        self.proxying.own_front_proxy != Some(false) && self.proxying.proxy_client_cert_file.is_none()
    }

    fn check_front_proxy(&self, role: Role) -> Result<(), SettingError> {
        let is_named = match role {
            Role::Facade => self.proxying.proxy_client_cert_file.is_some(),
            _ => self.names_front_proxy(),
        };
        if self.proxying.own_front_proxy == Some(true) && is_named {
            let message = "cannot be used with --proxy-client-cert-file or --requestheader-*, which name another front proxy";
            return Err(SettingError::new("--own-front-proxy", message));
        }
        Ok(())
    }

    fn check(&self, role: Role) -> Result<(), SettingError> {
        self.metrics.check()?;
        self.tracing.check()?;
        self.serving.check()?;
        self.control.check(role)?;
        self.controllers.check()?;
        self.authentication.check()?;
        self.proxying.check()?;
        self.check_front_proxy(role)?;
        self.kubelets.check()?;
        self.peers.check(&self.core_api.features()?, self.proxying.proxy_client_cert_file.is_some())?;
        self.authorization.check()?;
        self.audit.check()?;
        self.core_api.check()?;
        self.encryption.check()?;
        self.admission.check(self.core_api.features()?)?;
        self.service_accounts.check()?;
        self.signing.check()?;
        self.manifests.check()?;
        self.check_files()
    }
}

/// Returns a command with all flags and their environment variables.
pub(crate) fn command() -> clap::Command {
    with_environment(flag_command())
}

/// Returns a command with all flags, but without environment variables.
pub(crate) fn flag_command() -> clap::Command {
    let command = clap::Command::new("portico").disable_help_flag(true).disable_version_flag(true);
    let command = command.version(env!("CARGO_PKG_VERSION"));
    foreign_flags::with_foreign_flags(Settings::augment_args(command)).mut_args(with_value)
}

/// Lets a switch take a value (`--flag=true`), because switches have values in the configuration file.
fn with_value(arg: Arg) -> Arg {
    match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .default_value("false"),
        _ => arg,
    }
}

/// Returns the command with other defaults.
fn with_defaults(command: clap::Command, defaults: &[OtherDefault<'_>]) -> clap::Command {
    defaults.iter().fold(command, |command, (id, value)| {
        command.mut_arg(*id, |arg| arg.default_value(OsStr::from((*value).to_owned())))
    })
}

/// Adds the environment variable of every flag to the command.
fn with_environment(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| match arg.get_long() {
        None | Some("help" | "version") => arg,
        Some(long) => {
            let variable = format!("{ENV_PREFIX}{}", long.to_uppercase().replace('-', "_"));
            arg.env(OsStr::from(variable)).hide_env_values(true)
        }
    })
}

/// Returns the heading of a group of settings in the help.
fn heading(text: &'static str) -> Str {
    Str::from(text)
}

#[cfg(test)]
mod tests;
