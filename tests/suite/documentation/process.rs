//! A bash, and everything that it starts, as one process group that ends together.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portico_tests::WAIT_LIMIT;
use rustix::process::{Pid, Signal, kill_process_group};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);

/// A running bash whose output is read line by line.
pub(super) struct Process {
    group: Pid,
    child: Option<Child>,
    lines: Receiver<String>,
}

/// Result of reading output.
pub(super) enum Output {
    /// The line that was awaited.
    Line(String),
    /// All processes that could write have exited.
    End,
}

impl Process {
    /// Starts a bash. Standard error is part of the output.
    pub(super) fn start(command: &mut Command) -> (Self, ChildStdin) {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // Reads to the end even if no more lines are needed, so that writers do not block.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        (Self { group: Pid::from_child(&child), child: Some(child), lines }, stdin)
    }

    /// The next line of output. Panics with `context` if none comes before the deadline.
    pub(super) fn line(&self, deadline: Instant, context: impl FnOnce() -> String) -> Output {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Output::Line(line),
            Err(RecvTimeoutError::Disconnected) => Output::End,
            Err(RecvTimeoutError::Timeout) => panic!("not within {WAIT_LIMIT:?}: {}", context()),
        }
    }

    /// True if bash exits with 0. To be called when its output has ended.
    pub(super) fn succeeds(&mut self) -> bool {
        self.child.take().unwrap().wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = kill_process_group(self.group, Signal::TERM);
        let (sender, exited) = channel();
        std::thread::spawn(move || sender.send(child.wait()));
        if exited.recv_timeout(GRACE).is_err() {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}
