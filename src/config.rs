//! `portico config check`: applies a folder of manifests to a temporary control service and reports errors.

mod print;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use portico_server::{ManifestsReport, ManifestsSettings};

use crate::exit::{after_output, fail_with};
use crate::settings::{self, Role, SettingError, Settings};
use crate::{exit_codes, run as server};

/// Flags of the temporary control service, which calls neither backends nor webhooks.
const FLAGS: [&str; 3] = [
    "--ephemeral",
    "--backend-allow-cidr=255.255.255.255/32",
    "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
];

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Report the manifests of a folder that a server with --manifests would not apply
    ///
    /// The folder is applied to a temporary, empty control service in this process; no other server is contacted.
    ///
    /// Exit codes: 0 all manifests would be applied, perhaps with warnings; 1 some manifests would not be applied; 2 not checked.
    Check(Check),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Folder of manifests
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Value of --runtime-config on the server that applies the folder
    #[arg(long, value_name = "KEY=VALUE,...")]
    runtime_config: Option<String>,
    /// Value of --feature-gates on the server that applies the folder
    #[arg(long, value_name = "NAME=BOOL,...")]
    feature_gates: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Runs `portico config check`.
pub(crate) fn run(verb: &Verb) -> ExitCode {
    let Verb::Check(check) = verb;
    let report = match report(check) {
        Ok(report) => report,
        Err(error) => return fail_with(&format!("config check: {error}"), exit_codes::NOT_EXAMINED),
    };
    let printed = match check.output {
        Output::Text => print::text(&report),
        Output::Json => print::json(&report),
    };
    let has_errors = report.findings.iter().any(|finding| finding.is_error);
    let code = if has_errors { exit_codes::FOUND } else { exit_codes::SUCCESS };
    after_output(printed, code, exit_codes::NOT_EXAMINED)
}

fn report(check: &Check) -> Result<ManifestsReport, String> {
    let settings = check.server().map_err(|error| error.to_string())?;
    server::check_manifests(settings, ManifestsSettings::new(check.folder.clone()))
        .map_err(|error| error.to_string())
}

impl Check {
    fn server(&self) -> Result<Settings, SettingError> {
        let mut flags: Vec<OsString> = FLAGS.into_iter().map(OsString::from).collect();
        let flag_values =
            [("--runtime-config", &self.runtime_config), ("--feature-gates", &self.feature_gates)];
        for (flag, value) in flag_values {
            flags.extend(value.iter().map(|value| OsString::from(format!("{flag}={value}"))));
        }
        settings::parse_flags(Role::Server, flags)
    }
}
