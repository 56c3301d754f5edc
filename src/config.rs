//! `portico config check`: what a folder of manifests would come to, without a server.

mod print;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use portico_server::{ManifestsReport, ManifestsSettings};

use crate::control_service::parse;
use crate::ending::fail_with;
use crate::run;
use crate::settings::{self, Parsed, SettingError, Settings};

/// Something would not be applied.
const FOUND: u8 = 1;
/// It could not be looked at.
const FAILED: u8 = 2;

/// Settings of the server that the folder is tried on: it keeps nothing, and calls neither backends nor webhooks.
const SERVER: [&str; 5] = [
    "portico",
    "server",
    "--ephemeral",
    "--backend-allow-cidr=255.255.255.255/32",
    "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
];

/// Verbs about the configuration folder.
#[derive(Debug, Parser)]
#[command(name = "portico config", bin_name = "portico config", about, disable_version_flag = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say what of a folder of manifests (--manifests) would not be applied
    ///
    /// It is tried on a server in this process that has nothing else and keeps nothing: no other server is asked. Exit code 0: all would
    /// be applied (there may be warnings); 1: something would not; 2: not checked.
    Check(Check),
}

#[derive(Debug, clap::Args)]
struct Check {
    /// The folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// How findings are printed.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// The server's --runtime-config.
    #[arg(long, value_name = "KEY=VALUE,...")]
    runtime_config: Option<String>,
    /// The server's --feature-gates.
    #[arg(long, value_name = "NAME=BOOL,...")]
    feature_gates: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Runs the verb in these arguments, of which the first are `portico config`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli: Cli = match parse(arguments, FAILED) {
        Ok(cli) => cli,
        Err(ending) => return ending,
    };
    let Verb::Check(check) = cli.verb;
    let report = match report(&check) {
        Ok(report) => report,
        Err(error) => return fail_with(&format!("config check: {error}"), FAILED),
    };
    let printed = match check.output {
        Output::Text => print::text(&report),
        Output::Json => print::json(&report),
    };
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            fail_with(&format!("config check: {error}"), FAILED)
        }
        _ if report.findings.iter().any(|finding| finding.is_error) => ExitCode::from(FOUND),
        _ => ExitCode::SUCCESS,
    }
}

fn report(check: &Check) -> Result<ManifestsReport, String> {
    let settings = check.server().map_err(|error| error.to_string())?;
    run::rehearse(settings, ManifestsSettings::new(check.folder.clone())).map_err(|error| error.to_string())
}

impl Check {
    fn server(&self) -> Result<Settings, SettingError> {
        let mut arguments: Vec<OsString> = SERVER.into_iter().map(OsString::from).collect();
        let given = [("--runtime-config", &self.runtime_config), ("--feature-gates", &self.feature_gates)];
        for (flag, value) in given {
            arguments.extend(value.iter().map(|value| OsString::from(format!("{flag}={value}"))));
        }
        match settings::parse_alone(arguments)? {
            Parsed::Run(_, settings) => Ok(*settings),
            Parsed::Print(text) => Err(SettingError::new("config check", text)),
            Parsed::Version => Err(SettingError::new("config check", "asks for no version")),
        }
    }
}
