//! Injection of faults at random times that depend on the seed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portico_tests::disk::{self, Shim};
use portico_tests::{ETCD_MEMBERS, EtcdCluster};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use crate::Failure;
use crate::report::note;

/// Delay of the first fault in milliseconds.
const INITIAL_DELAY_MS: u64 = 1_000;
/// Time between two faults in milliseconds.
const INTERVAL_MS: std::ops::Range<u64> = 100..1_600;
/// Duration of a fault in milliseconds.
const DURATION_MS: std::ops::Range<u64> = 100..2_500;
/// Interval at which faults and processes are checked.
const TICK: Duration = Duration::from_millis(20);
/// Range of clock steps in seconds: the certificates of the run must be valid most of the time.
const CLOCK_STEP_SECONDS: std::ops::Range<i64> = -240..7_200;

/// Number of revisions that a compaction of etcd keeps.
const KEPT_REVISIONS: std::ops::Range<i64> = 0..200;

/// A fault, with the number of the node, wire or etcd member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Kill(usize),
    PowerLoss(usize),
    Pause(usize),
    SlowSync(usize),
    FailingSync(usize),
    FullDisk(usize),
    ClockStep(usize),
    Cut(usize),
    Delay(usize),
    BlackHole(usize),
    PostgresRestart,
    /// Disconnects a control service from all members of etcd.
    CutOff(usize),
    EtcdKill(usize),
    EtcdPause(usize),
    EtcdLeaderKill,
    EtcdLeaderPause,
    EtcdCompaction,
}

impl Fault {
    /// Returns the kind of the fault for reports.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill -9",
            Self::PowerLoss(_) => "power loss",
            Self::Pause(_) => "pause (SIGSTOP)",
            Self::SlowSync(_) => "slow fsync",
            Self::FailingSync(_) => "failing fsync",
            Self::FullDisk(_) => "full disk",
            Self::ClockStep(_) => "clock step",
            Self::Cut(_) => "cut connections",
            Self::Delay(_) => "slow connections",
            Self::BlackHole(_) => "black hole",
            Self::PostgresRestart => "PostgreSQL killed",
            Self::CutOff(_) => "partitioned from etcd",
            Self::EtcdKill(_) => "etcd member killed",
            Self::EtcdPause(_) => "etcd member paused",
            Self::EtcdLeaderKill => "etcd leader killed",
            Self::EtcdLeaderPause => "etcd leader paused",
            Self::EtcdCompaction => "etcd compacted",
        }
    }
}

/// Number of injected faults of each kind.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// Returns all faults that are possible in a cluster; the most destructive ones several times, so that they are more frequent.
fn possible(cluster: &Cluster) -> Vec<Fault> {
    let mut all = Vec::new();
    for (at, node) in cluster.nodes.iter().enumerate() {
        all.extend([Fault::Kill(at), Fault::Kill(at), Fault::Kill(at), Fault::Pause(at)]);
        if node.shim.is_some() {
            all.extend([Fault::PowerLoss(at), Fault::PowerLoss(at), Fault::PowerLoss(at)]);
            all.extend([
                Fault::SlowSync(at),
                Fault::FailingSync(at),
                Fault::FullDisk(at),
                Fault::ClockStep(at),
            ]);
        }
    }
    for at in 0..cluster.wires.len() {
        all.extend([Fault::Cut(at), Fault::Delay(at), Fault::BlackHole(at)]);
    }
    if cluster.postgres.is_some() {
        all.extend([Fault::PostgresRestart; 2]);
    }
    if cluster.etcd.is_some() {
        all.extend([Fault::EtcdLeaderKill; 4]);
        all.extend([Fault::EtcdLeaderPause; 3]);
        all.extend([Fault::EtcdCompaction; 3]);
        all.extend((0..ETCD_MEMBERS).flat_map(|member| [Fault::EtcdKill(member), Fault::EtcdPause(member)]));
        all.extend((0..cluster.etcd_wires.len()).flat_map(|service| [Fault::CutOff(service); 2]));
    }
    all
}

/// Injects faults until `stop`; several may be active at a time.
pub(crate) async fn run(
    cluster: &mut Cluster,
    random: &mut StdRng,
    stop: &CancellationToken,
) -> Result<Counts, Failure> {
    let mut counts = Counts::new();
    let all = possible(cluster);
    let mut active: Vec<(Instant, Fault)> = Vec::new();
    let mut next = Instant::now() + Duration::from_millis(INITIAL_DELAY_MS);
    let first_term = etcd_term(cluster);
    while !stop.is_cancelled() {
        let now = Instant::now();
        for (_, fault) in active.extract_if(.., |(until, _)| *until <= now) {
            end(cluster, fault)?;
        }
        cluster.supervise()?;
        if now >= next {
            next = now + Duration::from_millis(random.random_range(INTERVAL_MS));
            let Some(fault) = all.choose(random).copied() else { break };
            if is_injectable(cluster, fault) && active.iter().all(|(_, other)| *other != fault) {
                let lasting = Duration::from_millis(random.random_range(DURATION_MS));
                if let Some(lasts) = inject(cluster, fault, random, lasting)? {
                    *counts.entry(fault.kind()).or_default() += 1;
                    active.push((Instant::now() + lasting, lasts));
                }
            }
        }
        tokio::time::sleep(TICK).await;
    }
    for (_, fault) in active {
        end(cluster, fault)?;
    }
    if cluster.etcd.is_some() {
        counts.insert("etcd leader elections", etcd_term(cluster) - first_term);
    }
    Ok(counts)
}

/// Returns the term of etcd, which grows with each leader election.
fn etcd_term(cluster: &Cluster) -> u64 {
    cluster.etcd.as_ref().map_or(0, |etcd| tokio::task::block_in_place(|| etcd.term()))
}

/// Returns true if the fault can be injected now: only running processes can be killed.
fn is_injectable(cluster: &Cluster, fault: Fault) -> bool {
    match fault {
        Fault::Kill(at) | Fault::PowerLoss(at) => cluster.nodes[at].down_until.is_none(),
        _ => true,
    }
}

/// Injects a fault. Returns the fault to end later, or `None` if it was not injected.
fn inject(
    cluster: &mut Cluster,
    fault: Fault,
    random: &mut StdRng,
    lasting: Duration,
) -> Result<Option<Fault>, Failure> {
    if let Some(etcd) = &mut cluster.etcd
        && let Some(lasts) = tokio::task::block_in_place(|| inject_in_etcd(etcd, fault, random))
    {
        return Ok(lasts);
    }
    let down = Instant::now() + lasting / 3;
    match fault {
        Fault::Kill(at) => {
            cluster.nodes[at].kill();
            cluster.nodes[at].down_until = Some(down);
        }
        Fault::PowerLoss(at) => {
            cluster.nodes[at].kill();
            let node = &mut cluster.nodes[at];
            if let Some(shim) = &node.shim {
                let lost = disk::lose_power(shim.shadow(), &node.data(), random)?;
                note(&format!("  power loss of {}: {lost}", node.name));
            }
            node.down_until = Some(down);
        }
        Fault::Pause(at) => cluster.nodes[at].signal(Signal::STOP)?,
        Fault::SlowSync(at) => {
            let slow = Duration::from_millis(random.random_range(20..400));
            shim(cluster, at, |shim| shim.slow_sync(slow))?;
        }
        Fault::FailingSync(at) => {
            let failures = random.random_range(1..4);
            shim(cluster, at, |shim| shim.fail_syncs(failures))?;
        }
        Fault::FullDisk(at) => {
            let growth_limit = random.random_range(0..64 << 10);
            shim(cluster, at, |shim| shim.limit_growth(Some(growth_limit)))?;
        }
        Fault::ClockStep(at) => {
            let seconds = random.random_range(CLOCK_STEP_SECONDS);
            shim(cluster, at, |shim| shim.step_clock(seconds))?;
        }
        Fault::Cut(at) => cluster.wires[at].cut(),
        Fault::Delay(at) => {
            let delay = Duration::from_millis(random.random_range(5..200));
            cluster.wires[at].set_mode(delay, false);
        }
        Fault::BlackHole(at) => cluster.wires[at].set_mode(Duration::ZERO, true),
        Fault::PostgresRestart => {
            if let Some(postgres) = &cluster.postgres {
                tokio::task::block_in_place(|| postgres.kill());
            }
        }
        Fault::CutOff(at) => {
            for wire in &cluster.wires[cluster.etcd_wires[at].clone()] {
                wire.set_mode(Duration::ZERO, true);
                wire.cut();
            }
        }
        Fault::EtcdKill(_)
        | Fault::EtcdPause(_)
        | Fault::EtcdLeaderKill
        | Fault::EtcdLeaderPause
        | Fault::EtcdCompaction => return Ok(None),
    }
    Ok(Some(fault))
}

/// Injects a fault of etcd's members; returns `None` for other faults.
fn inject_in_etcd(etcd: &mut EtcdCluster, fault: Fault, random: &mut StdRng) -> Option<Option<Fault>> {
    let lasts = match fault {
        Fault::EtcdLeaderKill => etcd.leader().map(Fault::EtcdKill),
        Fault::EtcdLeaderPause => etcd.leader().map(Fault::EtcdPause),
        Fault::EtcdCompaction => etcd.compact(random.random_range(KEPT_REVISIONS)).then_some(fault),
        Fault::EtcdKill(_) | Fault::EtcdPause(_) => Some(fault),
        _ => return None,
    };
    match lasts {
        Some(Fault::EtcdKill(at)) => etcd.kill(at),
        Some(Fault::EtcdPause(at)) => etcd.pause(at, true),
        _ => {}
    }
    Some(lasts)
}

fn end(cluster: &mut Cluster, fault: Fault) -> Result<(), Failure> {
    match fault {
        Fault::Pause(at) => cluster.nodes[at].signal(Signal::CONT),
        Fault::SlowSync(at) => shim(cluster, at, |shim| shim.slow_sync(Duration::ZERO)),
        Fault::FullDisk(at) => shim(cluster, at, |shim| shim.limit_growth(None)),
        Fault::Delay(at) | Fault::BlackHole(at) => {
            cluster.wires[at].set_mode(Duration::ZERO, false);
            Ok(())
        }
        Fault::PostgresRestart => {
            if let Some(postgres) = &cluster.postgres {
                tokio::task::block_in_place(|| postgres.restart());
            }
            Ok(())
        }
        Fault::CutOff(at) => {
            for wire in &cluster.wires[cluster.etcd_wires[at].clone()] {
                wire.set_mode(Duration::ZERO, false);
            }
            Ok(())
        }
        Fault::EtcdKill(at) => {
            if let Some(etcd) = &mut cluster.etcd {
                etcd.restart(at);
            }
            Ok(())
        }
        Fault::EtcdPause(at) => {
            if let Some(etcd) = &cluster.etcd {
                etcd.pause(at, false);
            }
            Ok(())
        }
        // The supervisor restarts killed processes; failing syncs count down; clocks keep their step.
        Fault::Kill(_)
        | Fault::PowerLoss(_)
        | Fault::FailingSync(_)
        | Fault::ClockStep(_)
        | Fault::Cut(_)
        | Fault::EtcdLeaderKill
        | Fault::EtcdLeaderPause
        | Fault::EtcdCompaction => Ok(()),
    }
}

fn shim(
    cluster: &mut Cluster,
    at: usize,
    change: impl FnOnce(&mut Shim) -> Result<(), Failure>,
) -> Result<(), Failure> {
    cluster.nodes[at].shim.as_mut().map_or(Ok(()), change)
}
