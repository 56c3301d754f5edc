//! The process: where its data lies, what it logs, where it says that it is ready.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::error::SettingError;

/// Settings of the process.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Process"))]
pub(crate) struct Process {
    /// A YAML file of settings: keys are the flags' names, lists as lists. Flags and variables win over it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder of the database, certificates and kubeconfigs; made with mode 0700.
    #[arg(long, value_name = "DIR", default_value = "./portico-data")]
    pub(crate) data_dir: PathBuf,
    /// Keep nothing: the data folder is a temporary one (TMPDIR says where) that is removed at the end, nothing waits for the disk,
    /// ports that are not named are any free ones, and the end waits for nobody. Not with --data-dir.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) ephemeral: bool,
    /// Write the bound addresses here as JSON ({"https", "grpc", "pid"}) once ready; removed on a clean exit.
    #[arg(long, value_name = "FILE")]
    pub(crate) addresses_file: Option<PathBuf>,
    /// What to log: a level (error, warn, info, debug; trace where debug assertions are on), a filter such as portico_store=debug, or a klog number.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value = "info")]
    pub(crate) verbosity: String,
    /// How to log: text or json.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) logging_format: LoggingFormat,
    /// Let tests ask for faults at /portico/test-faults: latency, refusals, lost answers, watches that break off, stale reads. Only with
    /// --ephemeral.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) test_faults: bool,
    /// End when standard input does, as it does with the process that holds its other end. Not with a command.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) exit_with_stdin: bool,
    /// What is printed to standard output once everything is served: text, or json ({"url", "kubeconfig", "grpc", "certs", "pid"} on one line).
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) ready_format: ReadyFormat,
    /// Serve /debug/pprof (when built with it) and /debug/flags.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) profiling: bool,
    /// Serve the console at /console/, and below /console/data/ and /grpc/ what it shows. What it asks for needs permissions as
    /// anything else; the page itself holds no data.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) console: bool,
    /// Serve /debug/pprof and /debug/flags over this Unix socket, too, to whoever may write to it: its owner.
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_socket_path: Option<PathBuf>,
    /// Threads for work that is shared, and as many that serve connections; 0 = one of each per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) worker_threads: usize,
}

impl Process {
    /// `command` is the program beside the server.
    pub(super) fn check(&self, command: &[OsString]) -> Result<(), SettingError> {
        if self.test_faults && !self.ephemeral {
            return Err(SettingError::new(
                "--test-faults",
                "only a server that keeps nothing may be faulty: --ephemeral",
            ));
        }
        if self.exit_with_stdin && !command.is_empty() {
            return Err(SettingError::new("--exit-with-stdin", "standard input is the command's"));
        }
        Ok(())
    }
}

/// What says that everything is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadyFormat {
    /// For people.
    Text,
    /// For programs that start this one.
    Json,
}

/// How to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoggingFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}
