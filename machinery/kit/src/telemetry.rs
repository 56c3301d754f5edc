//! Structured logs to standard error, as text or JSON, with a level that can change at run time.
//!
//! Lines go through a bounded queue to one writer thread, so that a slow reader of the log never delays
//! a request: when the queue is full, lines are dropped and counted. Does not depend on the source of the lines.

mod json;
mod writer;

use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, Registry, reload};

use json::KlogJson;
use writer::Queue;

// Release builds exclude the messages below warnings that tracing emits for `log` (`Cargo.toml`); debug builds include them.
const _: () =
    assert!(cfg!(debug_assertions) || log::STATIC_MAX_LEVEL as usize <= log::LevelFilter::Warn as usize);

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text for human readers.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Error of setting up or changing logging.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level is not a number, a level name or a list of directives.
    #[error("invalid log level {}: {source}", portico_gostd::strconv::quote(level))]
    Level {
        /// Rejected text.
        level: String,
        /// Error of the parser.
        source: ParseError,
    },
    /// The level is empty, which would disable the log.
    #[error("invalid log level \"\": a number, a level or directives are needed")]
    NoLevel,
    /// Another subscriber is already installed in this process.
    #[error("logging is already set up: {0}")]
    AlreadyInitialized(#[from] TryInitError),
    /// Logging was shut down because the process is ending.
    #[error("logging is shut down: {0}")]
    ShutDown(#[from] reload::Error),
    /// The writer thread could not be started.
    #[error("cannot start the log writer: {}", portico_gostd::os::error_text(.0))]
    Writer(#[from] std::io::Error),
}

/// Handle of the logging of a process. Dropping the last handle flushes the log.
#[derive(Clone)]
pub struct Telemetry {
    reload: reload::Handle<EnvFilter, Registry>,
    queue: Queue,
}

impl Telemetry {
    /// Sets up logging for the process, once. `level` is as in [`Telemetry::set_level`].
    pub fn init(format: LogFormat, level: &str) -> Result<Self, TelemetryError> {
        let queue = Queue::start(std::io::stderr())?;
        let (filter, reload) = reload::Layer::new(parse_level(level)?);
        let layer = tracing_subscriber::fmt::layer().with_writer(queue.clone()).with_target(true);
        let layer = match format {
            LogFormat::Text => layer.with_ansi(false).boxed(),
            LogFormat::Json => layer.event_format(KlogJson).boxed(),
        };
        tracing_subscriber::registry().with(filter).with(layer).try_init()?;
        Ok(Self { reload, queue })
    }

    /// Changes the level: a klog verbosity (`0` to `10`), a level (`debug`), or directives
    /// (`info,portico_proxy=trace`).
    pub fn set_level(&self, level: &str) -> Result<(), TelemetryError> {
        if level.trim().is_empty() {
            return Err(TelemetryError::NoLevel);
        }
        self.reload.reload(parse_level(level)?)?;
        tracing::info!(verbosity = level, "log level changed");
        Ok(())
    }

    /// Returns the current directives.
    pub fn level(&self) -> String {
        self.reload.with_current(ToString::to_string).unwrap_or_default()
    }

    /// Returns the number of lines that were dropped because the queue was full.
    pub fn dropped_lines(&self) -> u64 {
        self.queue.dropped()
    }

    /// Waits until all lines logged so far are written, for at most one second.
    pub fn flush(&self) {
        self.queue.flush();
    }
}

/// Parses a level. klog's verbosities 0 to 3 mean info, 4 and 5 debug, higher ones trace; libraries log two levels less. rustls
/// warns about every client that sends an IP address as server name, which many clients do.
fn parse_level(level: &str) -> Result<EnvFilter, TelemetryError> {
    let level = level.trim();
    let directives = match level.parse::<u8>() {
        Ok(0..=3) => "info,rustls::msgs::handshake=error",
        Ok(4..=5) => {
            "debug,rustls::msgs::handshake=error,h2=info,hyper=info,hyper_util=info,rustls=info,tower=info,tonic=info,sqlx=info"
        }
        Ok(_) => {
            "trace,h2=debug,hyper=debug,hyper_util=debug,rustls=debug,tower=debug,tonic=debug,sqlx=debug"
        }
        Err(_) => level,
    };
    EnvFilter::try_new(directives).map_err(|source| TelemetryError::Level { level: level.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_levels_and_directives_are_levels() {
        for (level, directives) in [("warn", "warn"), (" debug ", "debug")] {
            assert_eq!(parse_level(level).unwrap().to_string(), directives);
        }
        assert!(parse_level("2").unwrap().to_string().contains("rustls::msgs::handshake=error"));
        assert!(parse_level("5").unwrap().to_string().contains("h2=info"));
        assert!(parse_level("info,portico_proxy=trace").unwrap().to_string().contains("portico_proxy=trace"));
        let error = parse_level("info,x=loud").unwrap_err().to_string();
        assert!(error.starts_with("invalid log level \"info,x=loud\": "), "{error}");
    }

    #[test]
    fn the_level_changes_at_run_time() {
        let telemetry = Telemetry::init(LogFormat::Json, "info").unwrap();
        assert!(!tracing::enabled!(tracing::Level::DEBUG));
        telemetry.set_level("debug").unwrap();
        assert!(tracing::enabled!(tracing::Level::DEBUG));
        assert_eq!(telemetry.level(), "debug");
        assert!(telemetry.set_level("=").is_err() || telemetry.level() == "debug");
        telemetry.flush();
        assert!(Telemetry::init(LogFormat::Text, "info").is_err());
    }
}
