//! An etcd cluster of three members, each of which can be killed, paused, and restarted.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::etcd::{free_port, post, program};
use crate::wait::WAIT_LIMIT;

/// Number of members: the cluster tolerates the loss of one.
pub const MEMBERS: usize = 3;
/// Time for a response of a member, which may be paused.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A cluster; its processes end when this is dropped.
pub struct EtcdCluster {
    program: PathBuf,
    folder: tempfile::TempDir,
    members: Vec<Member>,
}

struct Member {
    client: u16,
    peer: u16,
    running: Option<Child>,
}

/// Status reported by a member.
#[derive(Clone, Debug, serde::Deserialize)]
struct Status {
    header: Header,
    leader: Option<String>,
    #[serde(rename = "raftTerm")]
    term: String,
}

#[derive(Clone, Debug, serde::Deserialize)]
struct Header {
    member_id: String,
    revision: Option<String>,
}

impl EtcdCluster {
    /// Starts the members and waits for a leader. `None`, and a report, if etcd is not installed or too old.
    pub fn start() -> Option<Self> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("portico-etcd-").tempdir().unwrap();
        let member = |_| Member { client: free_port(), peer: free_port(), running: None };
        let mut cluster = Self { program, folder, members: (0..MEMBERS).map(member).collect() };
        cluster.heal();
        cluster.wait_for_leader();
        Some(cluster)
    }

    /// Waits until there is a leader.
    pub fn wait_for_leader(&self) -> usize {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            if let Some(leader) = self.leader() {
                return leader;
            }
            assert!(Instant::now() < deadline, "the members choose no leader: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts a member on its present data, without waiting, unless it is running.
    pub fn restart(&mut self, at: usize) {
        if self.members[at].running.as_mut().is_some_and(|running| running.try_wait().unwrap().is_none()) {
            return;
        }
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let all: Vec<String> = self
            .members
            .iter()
            .enumerate()
            .map(|(at, member)| format!("member-{at}={}", url(member.peer)))
            .collect();
        let (client, peer) = (url(self.members[at].client), url(self.members[at].peer));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "SIGKILL"]).arg(&self.program);
        // A kill does not lose the page cache: syncs matter only for power losses, which are not tested here.
        command.args(["--unsafe-no-fsync", "--name", &format!("member-{at}"), "--log-level", "error"]);
        command.arg("--data-dir").arg(self.folder.path().join(format!("data-{at}")));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &all.join(","), "--initial-cluster-state", "new"]);
        let log =
            std::fs::File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        self.members[at].running = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// Kills a member (`kill -9`).
    pub fn kill(&mut self, at: usize) {
        let Some(mut running) = self.members[at].running.take() else { return };
        kill_process(Pid::from_child(&running), Signal::KILL).unwrap();
        running.wait().unwrap();
    }

    /// Pauses or continues a member.
    pub fn pause(&self, at: usize, pauses: bool) {
        let Some(running) = &self.members[at].running else { return };
        let signal = if pauses { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(running), signal).unwrap();
    }

    /// Restarts or continues all members.
    pub fn heal(&mut self) {
        for at in 0..MEMBERS {
            self.pause(at, false);
            self.restart(at);
        }
    }

    fn status(&self, at: usize) -> Option<Status> {
        serde_json::from_str(&self.post(at, "maintenance/status", "{}")?).ok()
    }

    /// Sends a request to a member's HTTP gateway; returns the body of a successful response.
    pub fn post(&self, at: usize, path: &str, body: &str) -> Option<String> {
        self.members[at].running.as_ref()?;
        post(self.members[at].client, path, body, RESPONSE_TIMEOUT)
    }

    fn statuses(&self) -> impl Iterator<Item = (usize, Status)> + '_ {
        (0..MEMBERS).filter_map(|at| Some((at, self.status(at)?)))
    }

    /// Returns the leader, as reported by itself.
    pub fn leader(&self) -> Option<usize> {
        let leads = |status: &Status| status.leader.as_ref() == Some(&status.header.member_id);
        self.statuses().find(|(_, status)| leads(status)).map(|(at, _)| at)
    }

    /// Returns the term: the number of elections, including those without a winner.
    pub fn term(&self) -> u64 {
        self.statuses().filter_map(|(_, status)| status.term.parse().ok()).max().unwrap_or_default()
    }

    /// Compacts the history except for the last `kept` revisions; returns true if a member did it.
    pub fn compact(&self, retained_revisions: i64) -> bool {
        let revisions = self.statuses().filter_map(|(_, status)| status.header.revision?.parse::<i64>().ok());
        let up_to = revisions.max().unwrap_or_default() - retained_revisions;
        let body = format!(r#"{{"revision":"{up_to}"}}"#);
        up_to > 0 && (0..MEMBERS).any(|at| self.post(at, "kv/compaction", &body).is_some())
    }

    /// Returns the address of a member.
    pub fn address(&self, at: usize) -> std::net::SocketAddr {
        ([127, 0, 0, 1], self.members[at].client).into()
    }

    /// Returns the logs of the members.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        for at in 0..MEMBERS {
            self.kill(at);
        }
    }
}
