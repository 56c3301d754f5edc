//! Program `kube-apiserver` of `portico testenv`: runs Portico with defaults for tests.
//!
//! `--etcd-servers` names the program `etcd` of `portico testenv`, which reports the folder for the state, or a real etcd, which
//! stores the state itself. A second server with the same folder is a facade of the first.

use std::ffi::OsString;
use std::fs::File;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::ErrorKind;

use super::arguments::{controllers, normalize};
use super::election::{self, ElectionRole};
use super::format::version;
use super::state_location::{self, StateLocation};
use crate::exit::{fail_with_hint, print_text};
use crate::exit_codes;
use crate::run::{self, Failure};
use crate::settings::{self, OtherDefault, ReadError, Role, SettingError, Settings};

/// Name of the folder for the state if `--etcd-prefix` is empty.
const NO_PREFIX: &str = "root";

/// Serves until a signal stops the process.
pub(super) fn main(arguments: Vec<OsString>) -> ExitCode {
    let started = Instant::now();
    let settings = match parse(normalize(arguments)) {
        Ok(settings) => settings,
        Err(ReadError::CommandLine(error)) if error.kind() == ErrorKind::DisplayHelp => {
            return print_text(&error.to_string(), exit_codes::FAILED);
        }
        Err(ReadError::CommandLine(error)) if error.kind() == ErrorKind::DisplayVersion => {
            return print_text(&format!("Kubernetes v{}", version()), exit_codes::FAILED);
        }
        Err(read_error) => {
            let error = SettingError::from(read_error);
            return fail(&error, error.hint(), exit_codes::USAGE);
        }
    };
    match serve(settings, started) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => fail(&failure, failure.hint(), failure.exit_code()),
    }
}

fn fail(error: &dyn std::fmt::Display, hint: Option<&str>, code: u8) -> ExitCode {
    fail_with_hint(&format!("kube-apiserver: {error}"), hint, code)
}

fn parse(arguments: Vec<OsString>) -> Result<Settings, ReadError> {
    let controllers = controllers()?;
    let defaults: [OtherDefault<'_>; 6] = [
        ("controllers", &controllers),
        // Several servers run at the same time, and no client needs a fixed address.
        ("control_address", "127.0.0.1:0"),
        // envtest polls /healthz ten times a second and takes the first 200 for readiness.
        ("serve_when_ready", "true"),
        // Neither kube-apiserver nor envtest creates a front-proxy certificate.
        ("own_front_proxy", "false"),
        ("shutdown_drain", "false"),
        ("database_reserve_bytes", "0"),
    ];
    let settings = settings::parse_as(&defaults, arguments)?;
    match settings.store.etcd.etcd_servers.is_empty() {
        true => Err(SettingError::new("--etcd-servers", "must be specified").into()),
        false => Ok(settings),
    }
}

/// Runs the server, with its state in the folder that the program `etcd` reports, or in a real etcd.
fn serve(mut settings: Settings, started: Instant) -> Result<u8, Failure> {
    let location =
        settings.store.etcd.etcd_servers.first().and_then(|first| state_location::request_location(first));
    let mut role = Role::AllInOne;
    // The lock of the first server is held until the process ends.
    let _first_lock = match location {
        Some(location) => join(&location, &mut role, &mut settings)?,
        None => {
            // A real etcd stores the state; the data folder of the process is temporary.
            settings.process.ephemeral = true;
            None
        }
    };
    run::run(role, settings, started)
}

/// Selects the folder for the state below `location`, one per etcd prefix. If this server is the first in the folder, returns its
/// lock. Otherwise makes this server a facade of the first, and returns `None`.
fn join(
    location: &StateLocation,
    role: &mut Role,
    settings: &mut Settings,
) -> Result<Option<File>, SettingError> {
    let etcd = &mut settings.store.etcd;
    let prefix = etcd.etcd_prefix.trim_matches('/').replace('/', "_");
    let name = if prefix.is_empty() { NO_PREFIX } else { &prefix };
    let folder = location.folder.join(name);
    etcd.etcd_servers.clear();
    match election::elect(&folder)? {
        ElectionRole::First(lock) => {
            settings.process.data_dir = folder;
            settings.store.unsafe_no_fsync |= location.unsafe_no_fsync;
            Ok(Some(lock))
        }
        ElectionRole::FacadeOf(kubeconfig) => {
            *role = Role::Facade;
            settings.process.ephemeral = true;
            settings.control.control_kubeconfig = vec![kubeconfig];
            Ok(None)
        }
    }
}
