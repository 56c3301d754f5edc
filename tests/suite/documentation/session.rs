//! One run of a page: a bash for its blocks, and further terminals.

use std::fs::File;
use std::io::Write as _;
use std::process::ChildStdin;
use std::time::Instant;

use portico_tests::WAIT_LIMIT;

use super::cargo;
use super::checkout::Checkout;
use super::process::{Output, Process};

/// First commands of bash: one stream of output, and background jobs that end with it.
const PREAMBLE: &str =
    "set -euo pipefail; exec 2>&1; trap 'left=$(jobs -p); [ -z \"$left\" ] || kill $left; wait' EXIT\n";

/// A page that is being run.
pub(super) struct Session {
    file: String,
    printed: String,
    blocks: usize,
    // Terminals and bash end before the folder is removed.
    terminals: Vec<Process>,
    bash: Process,
    stdin: ChildStdin,
    checkout: Checkout,
}

impl Session {
    pub(super) fn new(file: &str) -> Self {
        let checkout = Checkout::new();
        let (bash, mut stdin) = Process::start(&mut checkout.bash());
        stdin.write_all(PREAMBLE.as_bytes()).unwrap();
        Self {
            file: file.to_owned(),
            printed: String::new(),
            blocks: 0,
            terminals: Vec::new(),
            bash,
            stdin,
            checkout,
        }
    }

    /// Runs a block in the bash of the page.
    pub(super) fn run(&mut self, block: &str) {
        self.blocks += 1;
        let script = format!("block-{}.sh", self.blocks);
        let end = format!("--- end of block {} ---", self.blocks);
        std::fs::write(self.checkout.path(&script), self.checkout.with_free_ports(block)).unwrap();
        writeln!(self.stdin, "source ./{script} </dev/null; rm {script}; echo '{end}'").unwrap();
        let context = |printed: &str| format!("{}:\n{block}\nprinted:\n{printed}", self.file);
        let deadline = Instant::now() + WAIT_LIMIT;
        let mut printed = String::new();
        loop {
            match self.bash.line(deadline, || context(&printed)) {
                Output::Line(line) => {
                    // The last command may have printed no line feed.
                    let last = line.strip_suffix(&end);
                    printed += &format!("{}\n", last.unwrap_or(&line));
                    if last.is_some() {
                        break;
                    }
                }
                Output::End => panic!("a command fails in {}", context(&printed)),
            }
        }
        self.printed += &printed;
    }

    /// Starts each command of a block in a separate terminal.
    pub(super) fn start(&mut self, block: &str) {
        for command in block.replace("\\\n", " ").lines() {
            let errors = self.checkout.path("terminal.log");
            let script = format!("set -euo pipefail\n{}", self.checkout.with_free_ports(command));
            let mut bash = self.checkout.bash();
            bash.args(["-c", &script]).stderr(File::create(&errors).unwrap());
            let (mut terminal, _) = Process::start(&mut bash);
            let context =
                || format!("{}:\n{command}\n{}", self.file, std::fs::read_to_string(&errors).unwrap());
            match terminal.line(Instant::now() + WAIT_LIMIT, context) {
                Output::Line(line) => {
                    self.printed += &format!("{line}\n");
                    self.terminals.push(terminal);
                }
                Output::End => assert!(terminal.succeeds(), "a command fails in {}", context()),
            }
        }
    }

    /// Ends all processes, checks the calls of cargo, and returns the output.
    pub(super) fn finish(self) -> String {
        cargo::check(&self.checkout.path(cargo::CALLS));
        self.printed
    }
}
