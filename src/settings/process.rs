//! Flags of the process: data directory, logging, readiness, threads.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::error::SettingError;

/// Flags of the process.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("General"))]
pub(crate) struct Process {
    /// YAML file with settings.
    ///
    /// Keys are flag names without dashes; lists are YAML lists; an unknown key is an error. Flags and environment
    /// variables override the file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory for the database, certificates and kubeconfig files.
    ///
    /// A missing directory is created with mode 0700.
    #[arg(long, value_name = "DIR", default_value = "./portico-data")]
    pub(crate) data_dir: PathBuf,
    /// Keep no data: use a temporary data directory and remove it on exit.
    ///
    /// The directory is created in TMPDIR. Other defaults change: --secure-port=0, --control-address=127.0.0.1:0,
    /// --unsafe-no-fsync, --shutdown-drain=false and --database-reserve-bytes=0. Cannot be combined with --data-dir,
    /// --database-url or --etcd-servers.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) ephemeral: bool,
    /// File that receives the bound addresses as JSON once the server is ready.
    ///
    /// The object has the fields `https`, `grpc` and `pid`. The file is removed on a clean exit.
    #[arg(long, value_name = "FILE")]
    pub(crate) addresses_file: Option<PathBuf>,
    /// Log verbosity: a level, a filter or a klog number.
    ///
    /// Levels are error, warn, info and debug; trace exists in builds with debug assertions. A filter sets levels per
    /// module, for example info,portico_store=debug. With `portico run -- CMD` the default is error.
    #[arg(
        short = 'v',
        long = "v",
        help_heading = "Logging, metrics and tracing",
        value_name = "LEVEL",
        default_value = "info"
    )]
    pub(crate) verbosity: String,
    /// Format of log lines.
    ///
    /// The JSON format has the fields of kube-apiserver's JSON log: ts, logger, caller, msg, v and err.
    #[arg(
        long,
        help_heading = "Logging, metrics and tracing",
        value_name = "FORMAT",
        value_enum,
        default_value = "text"
    )]
    pub(crate) logging_format: LoggingFormat,
    /// Serve /portico/test-faults, where tests inject latency, errors, lost responses and broken watches.
    ///
    /// Requires --ephemeral.
    #[arg(long, help_heading = "Testing", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) test_faults: bool,
    /// Exit when standard input is closed, for example because the parent process has ended.
    ///
    /// Cannot be used with `portico run -- CMD`.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) exit_with_stdin: bool,
    /// Format of the message on standard output once the server is ready.
    ///
    /// The JSON form is one line with the fields `url`, `kubeconfig`, `grpc`, `certs` and `pid`.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) ready_format: ReadyFormat,
    /// Serve /debug/flags, and /debug/pprof in builds with the `pprof` feature.
    #[arg(long, help_heading = "Logging, metrics and tracing", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) profiling: bool,
    /// Serve the web console at /console/.
    ///
    /// The console reads data from /console/data/ and /grpc/ with the permissions of its user. With `false`, these three paths
    /// are not served.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) console: bool,
    /// Unix socket on which a facade serves /debug/pprof and /debug/flags without authentication.
    ///
    /// The socket has mode 0600 and is removed on exit.
    #[arg(long, help_heading = "Logging, metrics and tracing", value_name = "FILE")]
    pub(crate) debug_socket_path: Option<PathBuf>,
    /// Number of shared worker threads, and also of threads that serve connections; 0 = one of each per core.
    ///
    /// A facade opens two connections to its control service per serving thread.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) worker_threads: usize,
}

impl Process {
    /// Checks the flags against each other and against the command that runs alongside the server.
    pub(super) fn check(&self, command: &[OsString]) -> Result<(), SettingError> {
        if self.exit_with_stdin && !command.is_empty() {
            return Err(SettingError::new(
                "--exit-with-stdin",
                "cannot be used with a command, which reads standard input itself",
            ));
        }
        Ok(())
    }
}

/// Format of the message that reports readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadyFormat {
    /// Text, for people.
    Text,
    /// One JSON object, for programs.
    Json,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoggingFormat {
    /// Text, for people.
    Text,
    /// One JSON object per line.
    Json,
}
