//! Under the name `kube-apiserver`: Portico with that program's flags, and with defaults for tests.
//!
//! Where the etcd that it is told of is ours, its state lies where that says; a real one is used as an etcd. A second server of ours on
//! one etcd is a facade of the first.

use std::ffi::OsString;
use std::fs::File;
use std::process::ExitCode;
use std::time::Instant;

use super::arguments::{controllers, normalised};
use super::beside::{self, Position};
use super::kept::{self, Kept};
use super::shown::version;
use crate::ending::{fail_with, print_text};
use crate::run::{self, Failure};
use crate::settings::{self, OtherDefault, Parsed, Role, SettingError, Settings};

/// What state is kept under when servers of one etcd are told apart by --etcd-prefix.
const NO_PREFIX: &str = "root";

/// Serves until it is asked to stop.
pub(super) fn main(arguments: Vec<OsString>) -> ExitCode {
    let started = Instant::now();
    match parse(normalised(arguments)) {
        Ok(Parsed::Print(text)) => print_text(&text),
        Ok(Parsed::Version) => print_text(&format!("Kubernetes v{}", version())),
        Ok(Parsed::Run(role, settings)) => match serve(role, *settings, started) {
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
    let parsed = settings::parse_with(&defaults, arguments)?;
    if let Parsed::Run(_, settings) = &parsed
        && settings.store.etcd.etcd_servers.is_empty()
    {
        return Err(SettingError::new("--etcd-servers", "must be specified"));
    }
    Ok(parsed)
}

/// Serves, beside whatever is at the address of its etcd.
fn serve(mut role: Role, mut settings: Settings, started: Instant) -> Result<u8, Failure> {
    let kept = settings.store.etcd.etcd_servers.first().and_then(|first| kept::ask(first));
    // Held until the end.
    let _first = match kept {
        Some(kept) => keep_in(&kept, &mut role, &mut settings)?,
        None => {
            // State lies in a real etcd; the folder of the process itself is a temporary one.
            settings.process.ephemeral = true;
            None
        }
    };
    run::run(role, settings, started)
}

/// State lies in the folder of our etcd, apart for each prefix. Answers with what makes this server the first one there, or none if it
/// is to follow another.
fn keep_in(kept: &Kept, role: &mut Role, settings: &mut Settings) -> Result<Option<File>, SettingError> {
    let etcd = &mut settings.store.etcd;
    let prefix = etcd.etcd_prefix.trim_matches('/').replace('/', "_");
    let name = if prefix.is_empty() { NO_PREFIX } else { &prefix };
    let folder = kept.folder.join(name);
    etcd.etcd_servers.clear();
    match beside::position_in(&folder)? {
        Position::First(held) => {
            settings.process.data_dir = folder;
            settings.store.unsafe_no_fsync |= kept.unsafe_no_fsync;
            Ok(Some(held))
        }
        Position::FacadeOf(kubeconfig) => {
            *role = Role::Facade;
            settings.process.ephemeral = true;
            settings.control.control_kubeconfig = vec![kubeconfig];
            Ok(None)
        }
    }
}
