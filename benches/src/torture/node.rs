//! A process of the cluster under test: started, killed, paused, and restarted after each end on the same folder
//! and ports, as a supervisor of the machine would.

use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use portico_tests::disk::Shim;
use rustix::process::{Pid, Signal, kill_process};

use crate::portico::command_of;
use crate::process::{EVENT_TIMEOUT, Process, free_address, wait_until};
use crate::{BenchContext, Failure};

/// A supervised process.
pub(crate) struct Node {
    pub(crate) name: String,
    binary: PathBuf,
    pub(crate) folder: PathBuf,
    arguments: Vec<String>,
    /// Address of its facade.
    pub(crate) https: Option<SocketAddr>,
    /// Address of its control service.
    pub(crate) grpc: Option<SocketAddr>,
    /// Shim between the process and its disk and clock.
    pub(crate) shim: Option<Shim>,
    process: Option<Process>,
    /// Earliest time of the next start.
    pub(crate) down_until: Option<Instant>,
    /// Number of unexpected ends.
    pub(crate) ended: u64,
    /// Number of starts.
    pub(crate) starts: u64,
}

impl Node {
    /// Creates a node that is not started yet. `role` is `server` or `facade`, or `None` for all-in-one.
    pub(crate) fn new(
        setting: &BenchContext,
        binary: &Path,
        name: &str,
        role: Option<&str>,
        flags: &[String],
    ) -> Result<Self, Failure> {
        let folder = setting.new_folder(&format!("{name}-"))?;
        let (https, grpc) = (free_address()?, free_address()?);
        let mut arguments: Vec<String> = role.iter().map(ToString::to_string).collect();
        let addresses = folder.join("addresses.json").to_string_lossy().into_owned();
        arguments.extend(["--addresses-file".to_owned(), addresses]);
        arguments.extend(["--secure-port".to_owned(), https.port().to_string()]);
        arguments.extend(["--control-address".to_owned(), grpc.to_string()]);
        arguments.extend(["--request-timeout".to_owned(), "20s".to_owned()]);
        arguments.extend(setting.certificates.flags());
        arguments.extend(flags.iter().cloned());
        Ok(Self {
            name: name.to_owned(),
            binary: binary.to_owned(),
            folder,
            arguments,
            https: (role != Some("server")).then_some(https),
            grpc: (role != Some("facade")).then_some(grpc),
            shim: None,
            process: None,
            down_until: None,
            ended: 0,
            starts: 0,
        })
    }

    /// Returns the data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Returns the path of the log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Starts the process without waiting.
    pub(crate) fn spawn(&mut self) -> Result<(), Failure> {
        let addresses = self.folder.join("addresses.json");
        // Fails at the first start, when the file does not exist.
        let _ = std::fs::remove_file(addresses);
        let data = self.data();
        let mut command = command_of(&self.binary, &data);
        command.args(&self.arguments);
        if let Some(shim) = &mut self.shim {
            shim.prepare(&data, &mut command)?;
        }
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        self.process = Some(Process::start_with_log(&mut command, log)?);
        self.down_until = None;
        self.starts += 1;
        Ok(())
    }

    /// Waits until the process is ready; it may end and be restarted while waiting.
    pub(crate) async fn wait_ready(&mut self) -> Result<(), Failure> {
        let (start, file) = (Instant::now(), self.folder.join("addresses.json"));
        let outcome = wait_until(&format!("{} is ready", self.name), async || {
            self.supervise()?;
            Ok(file.exists().then_some(()))
        })
        .await;
        outcome.map_err(|failure| {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(5).collect();
            let waited = start.elapsed().as_secs().min(EVENT_TIMEOUT.as_secs());
            format!("{failure} (waited {waited} s); its log ends with, last line first:\n{}", tail.join("\n"))
                .into()
        })
    }

    /// Restarts the process if it has ended, or if its down time is over.
    pub(crate) fn supervise(&mut self) -> Result<(), Failure> {
        if let Some(until) = self.down_until {
            if Instant::now() >= until {
                self.spawn()?;
            }
        } else if self.process.as_mut().is_some_and(|process| process.check_alive().is_err()) {
            self.ended += 1;
            self.process = None;
            self.down_until = Some(Instant::now() + std::time::Duration::from_millis(200));
        }
        Ok(())
    }

    /// Kills the process (`kill -9`); the caller sets the down time.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Sends a signal if the process is running.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let Some(process) = &self.process else { return Ok(()) };
        let pid =
            i32::try_from(process.id()).ok().and_then(Pid::from_raw).ok_or("a process without an id")?;
        match kill_process(pid, signal) {
            // It may have ended just before.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends SIGTERM, and waits for the end.
    pub(crate) async fn stop(&mut self) -> Result<(), Failure> {
        self.signal(Signal::TERM)?;
        let name = self.name.clone();
        wait_until(&format!("{name} ends"), async || {
            Ok(self.process.as_mut().is_none_or(|process| process.check_alive().is_err()).then_some(()))
        })
        .await?;
        self.process = None;
        Ok(())
    }
}
