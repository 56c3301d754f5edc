//! Tests of etcd with three members, one of which is killed or paused under load: acknowledged writes
//! persist, and reads continue.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_store::{Scope, Store, Subscription, Txn, TxnError};
use portico_tests::{ETCD_MEMBERS, EtcdCluster, report_measurement};

use crate::etcd::open_at;
use crate::harness::*;

/// Maximum time until readers and writers use another leader: an election takes one to two
/// seconds, and the machine may be busy.
const MAX_INTERRUPTION: Duration = Duration::from_secs(15);
/// Duration of each fault.
const FAULT_DURATION: Duration = Duration::from_secs(3);
/// Timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Path of the last write.
const LAST_PATH: &str = "a/end";

/// Fault of a member.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Pause,
}

fn cluster() -> Option<EtcdCluster> {
    tokio::task::block_in_place(EtcdCluster::start)
}

/// Reads until stopped. Returns the longest time between two responses, and the number of failures.
async fn read(store: Arc<dyn Store>, until: Instant) -> (Duration, u64) {
    let (mut last, mut longest, mut failed) = (Instant::now(), Duration::ZERO, 0);
    while Instant::now() < until {
        match tokio::time::timeout(RESPONSE_TIMEOUT, store.snapshot(&config_maps())).await {
            Ok(Ok(_)) => {
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            _ => failed += 1,
        }
        tokio::task::yield_now().await;
    }
    (longest.max(last.elapsed()), failed)
}

/// Creates objects one after the other. Returns the acknowledged ones with their revisions, and the longest time.
async fn write(store: Arc<dyn Store>, name: String, until: Instant) -> (Vec<(String, i64)>, Duration) {
    let (mut acknowledged, mut last, mut longest) = (Vec::new(), Instant::now(), Duration::ZERO);
    for n in 0.. {
        if Instant::now() >= until {
            break;
        }
        let key = key(&format!("a/{name}-{n}"));
        match commit(&*store, Txn::create(key.clone(), value(&key, "x"))).await {
            Ok(created) => {
                acknowledged.push((key.path().to_owned(), created.revision));
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            Err(TxnError::InDoubt(_) | TxnError::Unavailable(_)) => {}
            Err(error) => panic!("{}: {error}", key.path()),
        }
    }
    (acknowledged, longest)
}

/// Returns the events of a watch until the last write.
async fn follow(mut watch: Subscription) -> Vec<(String, i64)> {
    let mut received = Vec::new();
    while received.last().is_none_or(|(path, _)| path != LAST_PATH) {
        let events = take(&mut watch, 1).await;
        received.extend(events.iter().map(|event| (event.record.key.path().to_owned(), event.revision())));
    }
    received
}

/// Results of reads and writes during a fault.
struct LoadResult {
    longest_read: Duration,
    failed_reads: u64,
    longest_write: Duration,
    acknowledged: Vec<(String, i64)>,
    /// Revision of the last write.
    end: i64,
}

/// Reads and writes while a member is killed or paused and restored, then writes a last time.
async fn run_load(
    etcd: &mut EtcdCluster,
    one: &Arc<dyn Store>,
    other: &Arc<dyn Store>,
    member_fault: MemberFault,
) -> LoadResult {
    let until = Instant::now() + 3 * FAULT_DURATION;
    let happens = async {
        tokio::time::sleep(FAULT_DURATION / 3).await;
        match member_fault.fault {
            Fault::Kill => tokio::task::block_in_place(|| etcd.kill(member_fault.member)),
            Fault::Pause => etcd.pause(member_fault.member, true),
        }
        tokio::time::sleep(FAULT_DURATION).await;
        etcd.heal();
    };
    let written = [(one, "one"), (other, "other")]
        .map(|(store, name)| write(store.clone(), format!("{}-{name}", member_fault.name), until));
    let written = futures::future::join_all(written);
    let ((longest_read, failed_reads), written, ()) =
        tokio::join!(read(one.clone(), until), written, happens);
    let longest_write = written.iter().map(|(_, longest)| *longest).max().unwrap();
    let acknowledged = written.into_iter().flat_map(|(writes, _)| writes).collect();
    let end = put(&**one, &key(LAST_PATH), "x").await;
    LoadResult { longest_read, failed_reads, longest_write, acknowledged, end }
}

/// Fault and the affected member.
struct MemberFault {
    fault: Fault,
    member: usize,
    name: String,
}

/// Tests one fault of a member under load.
async fn test_fault(etcd: &mut EtcdCluster, fault: Fault, leads: bool) {
    let urls: Vec<String> = (0..ETCD_MEMBERS).map(|at| format!("http://{}", etcd.address(at))).collect();
    let (one, other) = (open_at(urls.clone()).await, open_at(urls).await);
    let watch = other.store.watch(Scope::all(&config_maps()), one.store.revision()).unwrap();
    let leader = tokio::task::block_in_place(|| etcd.wait_for_leader());
    let member = if leads { leader } else { (leader + 1) % ETCD_MEMBERS };
    let name =
        format!("{}-{}", format!("{fault:?}").to_lowercase(), if leads { "leader" } else { "follower" });
    let goes_wrong = MemberFault { fault, member, name: name.clone() };
    let (seen, load) = tokio::join!(follow(watch), run_load(etcd, &one.store, &other.store, goes_wrong));
    let LoadResult { longest_read, failed_reads, longest_write, acknowledged, end } = load;
    report_measurement(&format!(
        "{name}: reads stood still for {longest_read:?} at most ({failed_reads} failed), writes for {longest_write:?}; \
         {} writes",
        acknowledged.len()
    ));
    assert!(longest_read < MAX_INTERRUPTION, "{name}: no read for {longest_read:?}");
    assert!(!acknowledged.is_empty());
    let snapshot = other.store.snapshot(&config_maps()).await.unwrap();
    for (path, revision) in &acknowledged {
        assert_eq!(snapshot.get_path(path).map(|record| record.revision), Some(*revision), "{path}");
    }
    assert!(seen.contains(&(LAST_PATH.to_owned(), end)));
    assert!(seen.is_sorted_by(|a, b| a.1 < b.1), "the watch is out of order");
    let seen: HashSet<_> = seen.into_iter().collect();
    assert!(acknowledged.iter().all(|write| seen.contains(write)), "the watch misses writes");
    for process in [one, other] {
        assert!(process.tasks.failure().is_none());
        process.store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_or_paused_member_causes_a_short_interruption_and_no_loss() {
    let Some(mut etcd) = cluster() else { return };
    for fault in [Fault::Kill, Fault::Pause] {
        for leads in [true, false] {
            test_fault(&mut etcd, fault, leads).await;
        }
    }
}
