//! External programs that tests run: reported if they are not installed, killed if they take too long.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::WAIT_LIMIT;

/// Returns true if the program is installed; otherwise reports a skipped test.
pub fn is_installed(tool: &str) -> bool {
    let found = Command::new(tool).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        crate::report_skip(&format!("no {tool} on the PATH"));
    }
    found
}

/// Runs a program to its end. Kills it and panics if it takes too long.
pub fn output(command: &mut Command) -> Output {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let pid = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(WAIT_LIMIT) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            kill_process(pid, Signal::KILL).unwrap();
            panic!("{command:?} has not ended within {WAIT_LIMIT:?}");
        }
    }
}

/// Returns the first line of a running program's output that contains this text. Panics if none arrives in time.
pub fn line_with(output: impl Read + Send + 'static, text: &str) -> String {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let deadline = Instant::now() + WAIT_LIMIT;
    let mut seen = Vec::new();
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains(text) => return line,
            Ok(line) => seen.push(line),
            Err(error) => panic!("no line with {text:?}: {error}; the lines: {seen:#?}"),
        }
    }
}
