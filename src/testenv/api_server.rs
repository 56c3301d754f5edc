//! Under the name `kube-apiserver`: Portico with that program's flags, and with defaults for tests.
//!
//! Where the etcd that it is told of is ours, its state lies where that says; a real one is used as an etcd.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use super::arguments::{controllers, normalised};
use super::kept::{self, Kept};
use super::shown::version;
use crate::ending::{fail_with, print_text};
use crate::run;
use crate::settings::{self, OtherDefault, Parsed, SettingError, Settings};

/// What state is kept under when servers of one etcd are told apart by --etcd-prefix.
const NO_PREFIX: &str = "root";

/// Serves until it is asked to stop.
pub(super) fn main(arguments: Vec<OsString>) -> ExitCode {
    let started = Instant::now();
    match parse(normalised(arguments)) {
        Ok(Parsed::Print(text)) => print_text(&text),
        Ok(Parsed::Version) => print_text(&format!("Kubernetes v{}", version())),
        Ok(Parsed::Run(role, settings)) => match run::run(role, *settings, started) {
            Ok(code) => ExitCode::from(code),
            Err(failure) => fail(&failure, failure.exit_code()),
        },
        Err(error) => fail(&error, super::names::USAGE),
    }
}

fn fail(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    fail_with(&format!("kube-apiserver: {error}"), code)
}

fn parse(arguments: Vec<OsString>) -> Result<Parsed, SettingError> {
    let controllers = controllers()?;
    let defaults: [OtherDefault<'_>; 6] = [
        ("controllers", &controllers),
        // Several run at the same time, and nobody is told where.
        ("control_address", "127.0.0.1:0"),
        // envtest takes the first good answer of /healthz for readiness, and looks ten times a second.
        ("serve_when_ready", "true"),
        // A kube-apiserver makes none, and envtest names none.
        ("own_front_proxy", "false"),
        ("shutdown_drain", "false"),
        ("database_reserve_bytes", "0"),
    ];
    let mut parsed = settings::parse_with(&defaults, arguments)?;
    if let Parsed::Run(_, settings) = &mut parsed {
        let servers = &settings.store.etcd.etcd_servers;
        let first =
            servers.first().ok_or_else(|| SettingError::new("--etcd-servers", "must be specified"))?;
        match kept::ask(first) {
            Some(kept) => keep_in(&kept, settings),
            // State lies in a real etcd; the folder of the process itself is a temporary one.
            None => settings.process.ephemeral = true,
        }
    }
    Ok(parsed)
}

/// State lies in the folder of our etcd, apart for each prefix.
fn keep_in(kept: &Kept, settings: &mut Settings) {
    let etcd = &mut settings.store.etcd;
    let prefix = etcd.etcd_prefix.trim_matches('/').replace('/', "_");
    let name = if prefix.is_empty() { NO_PREFIX } else { &prefix };
    settings.process.data_dir = kept.folder.join(name);
    etcd.etcd_servers.clear();
    settings.store.unsafe_no_fsync |= kept.unsafe_no_fsync;
}
