//! One set of settings for both halves: flag, then `PORTICO_…` variable, then the YAML file, then the default.
//!
//! Every setting is parsed and checked before anything binds; what only the other half uses is checked and left.

mod admission;
mod audit;
mod authentication;
mod authorization;
mod control;
mod controllers;
mod core_api;
mod encryption;
mod ephemeral;
mod error;
mod file;
mod files;
mod flag_values;
mod foreign_flags;
mod given;
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
mod short_help;
mod signing;
mod store;
mod tracing;
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
use short_help::with_short_help;
pub(crate) use signing::Signing;
pub(crate) use store::StoreSettings;
pub(crate) use tracing::Tracing;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStr, Str};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use portico_kit::url_password::without_secrets;

/// The prefix of environment variables: `--data-dir` is `PORTICO_DATA_DIR`.
const ENV_PREFIX: &str = "PORTICO_";

/// The Kubernetes API without a Kubernetes cluster.
#[derive(Parser)]
#[command(name = "portico", version, propagate_version = true, args_conflicts_with_subcommands = false)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    settings: Settings,
}

/// What is asked for.
#[derive(Subcommand)]
enum Verb {
    /// Control service and facade in one process, as without a command
    ///
    /// With -- CMD ARGS: runs CMD once it serves, with KUBECONFIG set, ends with it and with its exit code; what is logged by default
    /// are errors.
    Run {
        /// The program, and its arguments.
        #[arg(last = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
    /// The control service alone: owns state, speaks gRPC.
    Server,
    /// A facade alone: speaks HTTPS, follows a control service (--control-kubeconfig).
    Facade,
    /// Print the version.
    Version,
}

/// What this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Control service and facade in one process.
    AllInOne,
    /// The control service alone.
    Server,
    /// A facade alone.
    Facade,
}

/// What a setting is unless somebody says it: its id, and the value.
pub(crate) type OtherDefault<'a> = (&'static str, &'a str);

/// Without -v, of a process that runs a command: standard error is the command's.
const QUIET: OtherDefault<'_> = ("verbosity", "error");

/// Every setting.
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
    /// The program to run once everything is served, and its arguments.
    #[arg(skip)]
    pub(crate) command: Vec<OsString>,
    /// Flags that were given and have no meaning here.
    #[arg(skip)]
    pub(crate) ignored: Vec<ForeignFlag>,
    /// Each flag's value, for `/flagz`.
    #[arg(skip)]
    pub(crate) flag_values: BTreeMap<String, String>,
}

/// What reading the command line comes to.
pub(crate) enum Parsed {
    /// Run as this.
    Run(Role, Box<Settings>),
    /// Print this (help) and end well.
    Print(String),
    /// Print the version and end well.
    Version,
}

/// Reads flags, environment and file. Help names these verbs, too.
///
/// # Errors
/// [`SettingError`] names the first setting that is wrong.
pub(crate) fn parse(argv: Vec<OsString>, verbs: Vec<clap::Command>) -> Result<Parsed, SettingError> {
    parse_by(command().subcommands(verbs), argv)
}

/// The same for a program of another name, whose settings have these defaults; a flag that is given again replaces what it was.
///
/// # Errors
/// [`SettingError`].
pub(crate) fn parse_with(defaults: &[OtherDefault<'_>], argv: Vec<OsString>) -> Result<Parsed, SettingError> {
    parse_by(with_defaults(command(), defaults).args_override_self(true), argv)
}

/// The same without the environment: nothing that a server on this machine is told counts.
///
/// # Errors
/// [`SettingError`].
pub(crate) fn parse_alone(argv: Vec<OsString>) -> Result<Parsed, SettingError> {
    parse_by(foreign_flags::with_foreign_flags(Cli::command()), argv)
}

fn parse_by(command: clap::Command, argv: Vec<OsString>) -> Result<Parsed, SettingError> {
    if argv.last().is_some_and(|last| last == "--") && is_of_run(&argv) {
        return Err(SettingError::new("--", "the program that is to run must stand behind it"));
    }
    // A role takes every flag, before it and behind it.
    let command = command.mut_args(|arg| arg.global(true));
    let first = match command.clone().try_get_matches_from(&argv) {
        Ok(matches) => matches,
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp) => return Ok(Parsed::Print(e.to_string())),
        Err(e) if matches!(e.kind(), ErrorKind::DisplayVersion) => return Ok(Parsed::Version),
        Err(e) if is_of_run(&argv) => return Err(hinted(&e)),
        Err(e) => return Err(one_line(&e)),
    };
    let (matches, argv) = match first.get_one::<PathBuf>("config") {
        None => (first, argv),
        Some(path) => {
            let from_file = file::arguments(path, &command, &first)?;
            let mut argv = argv.into_iter();
            let all: Vec<_> = argv.next().into_iter().chain(from_file).chain(argv).collect();
            (command.clone().try_get_matches_from(&all).map_err(|e| one_line(&e))?, all)
        }
    };
    let (command, matches) = match defaults_of(&matches) {
        defaults if defaults.is_empty() => (command, matches),
        defaults => {
            let command = with_defaults(command, &defaults);
            let matches = command.clone().try_get_matches_from(argv).map_err(|e| one_line(&e))?;
            (command, matches)
        }
    };
    settled(&command, &matches)
}

fn is_of_run(argv: &[OsString]) -> bool {
    argv.iter().any(|argument| argument == "run")
}

/// Of a command line of `run`: a program may have been meant by what is no flag.
fn hinted(error: &clap::Error) -> SettingError {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word))
            if error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-') =>
        {
            let how = format!("no such setting; a program stands behind --: portico run ... -- {word} ...");
            SettingError::new(word, how)
        }
        _ => one_line(error),
    }
}

/// Other defaults that follow from what was given.
fn defaults_of(matches: &ArgMatches) -> Vec<OtherDefault<'static>> {
    let mut defaults = Vec::new();
    if ephemeral::is_asked_for(matches) {
        defaults.extend(ephemeral::DEFAULTS);
    }
    let runs = matches.subcommand_matches("run").and_then(|run| run.get_raw("command"));
    if runs.is_some() {
        defaults.push(QUIET);
    }
    defaults
}

/// What everything that was given comes to.
fn settled(command: &clap::Command, matches: &ArgMatches) -> Result<Parsed, SettingError> {
    if let Some(verb) = matches.subcommand_name().filter(|name| !Verb::has_subcommand(name)) {
        return Err(SettingError::unknown(verb, "no flag of a server goes before it"));
    }
    let Cli { verb, mut settings } = Cli::from_arg_matches(matches).map_err(|e| one_line(&e))?;
    settings.ignored = foreign_flags::given(matches)?;
    settings.flag_values = flag_values::flag_values(command, matches);
    let role = match verb {
        None => Role::AllInOne,
        Some(Verb::Run { command }) => {
            if command.first().is_some_and(|program| program.is_empty()) {
                return Err(SettingError::new("--", "the program that is to run has an empty name"));
            }
            settings.command = command;
            Role::AllInOne
        }
        Some(Verb::Server) => Role::Server,
        Some(Verb::Facade) => Role::Facade,
        Some(Verb::Version) => return Ok(Parsed::Version),
    };
    settings.check(role)?;
    settings.process.check(&settings.command)?;
    ephemeral::check(matches)?;
    Ok(Parsed::Run(role, Box::new(settings)))
}

impl Settings {
    /// The folder of certificates.
    pub(crate) fn cert_dir(&self) -> PathBuf {
        self.serving.cert_dir.clone().unwrap_or_else(|| self.process.data_dir.join("certs"))
    }

    /// Whether the front proxy that backends are told of is ours: wanted, and no flag says who it is.
    pub(crate) fn own_front_proxy(&self) -> bool {
        let is_wanted = self.proxying.own_front_proxy.unwrap_or(self.store.etcd.etcd_servers.is_empty());
        is_wanted && !self.names_front_proxy()
    }

    fn names_front_proxy(&self) -> bool {
        self.proxying.proxy_client_cert_file.is_some() || self.authentication.names_front_proxies()
    }

    /// Whether a facade of its own process has its client certificate signed. What `--requestheader-*` tell it is whom it believes.
    pub(crate) fn is_front_proxy_signed(&self) -> bool {
        self.proxying.own_front_proxy != Some(false) && self.proxying.proxy_client_cert_file.is_none()
    }

    fn check_front_proxy(&self, role: Role) -> Result<(), SettingError> {
        let is_named = match role {
            Role::Facade => self.proxying.proxy_client_cert_file.is_some(),
            _ => self.names_front_proxy(),
        };
        if self.proxying.own_front_proxy == Some(true) && is_named {
            let why = "--proxy-client-cert-file and --requestheader-* say already who the front proxy is";
            return Err(SettingError::new("--own-front-proxy", why));
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

/// The command line of a process that serves.
pub(crate) fn command() -> clap::Command {
    with_short_help(with_environment(foreign_flags::with_foreign_flags(Cli::command())))
}

/// The command with other defaults.
fn with_defaults(command: clap::Command, defaults: &[OtherDefault<'_>]) -> clap::Command {
    defaults.iter().fold(command, |command, (id, value)| {
        command.mut_arg(*id, |arg| arg.default_value(OsStr::from((*value).to_owned())))
    })
}

/// Gives every flag its variable.
fn with_environment(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| match arg.get_long() {
        None | Some("help" | "version") => arg,
        Some(long) => {
            let variable = format!("{ENV_PREFIX}{}", long.to_uppercase().replace('-', "_"));
            arg.env(OsStr::from(variable)).hide_env_values(true)
        }
    })
}

fn one_line(error: &clap::Error) -> SettingError {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(s)) => Some(s.clone()),
        Some(ContextValue::Strings(s)) => Some(s.join(", ")),
        _ => None,
    };
    let setting = text(ContextKind::InvalidArg).or_else(|| text(ContextKind::InvalidSubcommand));
    let setting = setting.unwrap_or_default();
    let setting = setting.split_once([' ', '=', '[']).map_or(setting.as_str(), |(flag, _)| flag).to_owned();
    let reason = std::error::Error::source(error).map(ToString::to_string);
    let message = match (error.kind(), text(ContextKind::InvalidValue)) {
        (ErrorKind::UnknownArgument, _) => {
            format!("no such setting{}", suggestion(text(ContextKind::SuggestedArg)))
        }
        (ErrorKind::InvalidSubcommand, _) => {
            format!("no such command{}", suggestion(text(ContextKind::SuggestedSubcommand)))
        }
        (_, Some(value)) => {
            let value = without_secrets(&value);
            match reason.or_else(|| supported(error)) {
                Some(reason) => format!("invalid value {value:?}: {reason}"),
                None => format!("invalid value {value:?}"),
            }
        }
        (ErrorKind::ArgumentConflict, None) => {
            match text(ContextKind::PriorArg)
                .filter(|prior| Some(prior) != text(ContextKind::InvalidArg).as_ref())
            {
                Some(prior) => format!("cannot be used with {prior}"),
                None => "is given twice".to_owned(),
            }
        }
        (kind, None) => reason.unwrap_or_else(|| kind.to_string()),
    };
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => SettingError::unknown(&setting, message),
        _ => SettingError::new(&setting, message),
    }
}

/// What may have been meant.
fn suggestion(similar: Option<String>) -> String {
    similar.map_or_else(String::new, |similar| format!(", did you mean {similar}?"))
}

fn supported(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            Some(format!("must be one of {}", values.join(", ")))
        }
        _ => None,
    }
}

/// The heading under which a group of settings stands in --help.
fn heading(text: &'static str) -> Str {
    Str::from(text)
}

#[cfg(test)]
mod tests;
