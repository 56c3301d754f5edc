//! Processes that a bench starts. They are ended by their handle, never by name.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use crate::Failure;

/// Timeout of starts and other events.
pub(crate) const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A running process; it ends when this is dropped.
pub(crate) struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts a command with output to the file `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, Failure> {
        Self::start_with_log(command, File::create(log)?)
    }

    /// Starts a command with output to this file.
    pub(crate) fn start_with_log(command: &mut Command, log: File) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let child = child.map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { child, name })
    }

    /// Returns the process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if the process has ended.
    pub(crate) fn check_alive(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("{} ended: {status}", self.name).into()),
        }
    }

    /// Returns the resident memory in MiB.
    pub(crate) fn resident(&self) -> Result<f64, Failure> {
        Ok(field(self.id(), "VmRSS:")? / 1024.0)
    }

    /// Returns the part of the resident memory that no file backs, in MiB.
    pub(crate) fn anonymous(&self) -> Result<f64, Failure> {
        Ok(field(self.id(), "RssAnon:")? / 1024.0)
    }

    /// Returns the processor time of the process and its children. Unlike rates, it hardly depends on other load of the machine.
    pub(crate) fn processor_time(&self) -> Result<Duration, Failure> {
        Ok(Duration::from_nanos(processor_nanos(self.id())?))
    }

    /// Ends the process with a stop command, for processes whose children would outlive a kill.
    pub(crate) fn stop_with(&mut self, command: &mut Command) {
        // If the command fails, the drop kills the process.
        if command.stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        // Fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn field(process: u32, name: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    Ok(value.ok_or_else(|| format!("process {process} has no {name}"))?.parse()?)
}

/// Returns the processor time of all threads of a process and of its children.
fn processor_nanos(process: u32) -> Result<u64, Failure> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?.path();
        let spent = std::fs::read_to_string(thread.join("schedstat"))?;
        nanos += spent.split_whitespace().next().map_or(Ok(0), str::parse::<u64>)?;
        for child in std::fs::read_to_string(thread.join("children"))?.split_whitespace() {
            nanos += processor_nanos(child.parse()?)?;
        }
    }
    Ok(nanos)
}

/// Returns an address with a port that was free at the time of the call.
pub(crate) fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Calls `probe` every millisecond until it returns a value, for at most [`EVENT_TIMEOUT`].
pub(crate) async fn wait_until<T>(
    description: &str,
    mut probe: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let start = Instant::now();
    let mut pace = interval(Duration::from_millis(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while start.elapsed() < EVENT_TIMEOUT {
        pace.tick().await;
        if let Some(answer) = probe().await? {
            return Ok(answer);
        }
    }
    Err(format!("timed out after {} s: {description}", EVENT_TIMEOUT.as_secs()).into())
}
