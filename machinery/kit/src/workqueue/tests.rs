//! Tests of the guarantees of the queue.

use super::*;
use crate::metrics::{Format, Registry};
use crate::tasks::TaskSet;
use futures::FutureExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new("test", BackoffPolicy::CONTROLLER)
}

#[tokio::test]
async fn a_waiting_key_is_handed_out_once() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    queue.add("a");
    assert_eq!(queue.len(), 2);
    let first = queue.next().await.unwrap();
    assert_eq!(*first, "a");
    drop(first);
    assert_eq!(*queue.next().await.unwrap(), "b");
    assert!(queue.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_key_in_work_is_worked_on_again_only_after_it_is_done() {
    let queue = queue();
    queue.add("a");
    let work = queue.next().await.unwrap();
    queue.add("a");
    assert!(queue.next().now_or_never().is_none());
    assert!(!queue.is_idle());
    drop(work);
    drop(queue.next().await.unwrap());
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_several_delays_is_used() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", Duration::from_secs(30));
    queue.add_after("a", Duration::from_secs(10));
    queue.add_after("a", Duration::from_secs(20));
    drop(queue.next().await.unwrap());
    assert_eq!(start.elapsed().as_secs(), 10);
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn failures_of_a_key_make_it_wait_longer_until_forgotten() {
    let queue = queue();
    let start = Instant::now();
    for _ in 0..3 {
        queue.add_rate_limited("a");
        drop(queue.next().await.unwrap());
    }
    let waited = start.elapsed();
    assert!((35..40).contains(&waited.as_millis()), "{waited:?}");
    assert_eq!(queue.retries(&"a"), 3);
    queue.forget(&"a");
    assert_eq!(queue.retries(&"a"), 0);
}

#[tokio::test]
async fn shutdown_hands_out_the_rest_and_ends_every_waiter() {
    let queue = queue();
    queue.add("a");
    queue.add_after("never", Duration::from_secs(3600));
    queue.shutdown();
    queue.add("late");
    drop(queue.next().await.unwrap());
    assert!(queue.next().await.is_none());
    let (one, two) = tokio::join!(queue.next(), queue.next());
    assert!(one.is_none() && two.is_none());
}

#[tokio::test(start_paused = true)]
async fn workers_retry_failures_and_panics_and_never_work_on_one_key_twice_at_once() {
    let tasks = TaskSet::new();
    let queue = WorkQueue::new("test", BackoffPolicy::CONTROLLER);
    let (tx, mut rx) = mpsc::channel(16);
    let (tries, at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counter = tries.clone();
    run_workers(&tasks, "test-worker", 4, queue.clone(), move |key: u32| {
        let (tx, tries, at_once) = (tx.clone(), counter.clone(), at_once.clone());
        async move {
            assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0);
            tokio::task::yield_now().await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Err("first try fails"),
                1 => panic!("second try panics"),
                2 => Ok(ReconcileOutcome::RequeueAfter(Duration::from_secs(60))),
                _ => {
                    tx.send(key).await.map_err(|_| "closed")?;
                    Ok(ReconcileOutcome::Done)
                }
            }
        }
    });
    let start = Instant::now();
    queue.add(7);
    assert_eq!(rx.recv().await, Some(7));
    assert!(start.elapsed() >= Duration::from_secs(60));
    assert_eq!(tries.load(Ordering::SeqCst), 4);
    assert!(tasks.shutdown(Duration::from_secs(5)).await.is_empty());
    assert_eq!(queue.retries(&7), 0);
}

#[tokio::test]
async fn every_key_of_many_adders_is_worked_on() {
    let tasks = TaskSet::new();
    let queue = WorkQueue::new("test", BackoffPolicy::CONTROLLER);
    let (tx, mut rx) = mpsc::unbounded_channel();
    run_workers(&tasks, "test-worker", 3, queue.clone(), move |key: u32| {
        let _ = tx.send(key);
        async { Ok::<_, String>(ReconcileOutcome::Done) }
    });
    (0..1000).for_each(|key| queue.add(key));
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 1000 {
        seen.insert(rx.recv().await.unwrap());
    }
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn depth_adds_and_retries_are_exposed_under_the_queues_name() {
    let registry = Registry::new();
    let queue = WorkQueue::with_metrics(
        "AvailableConditionController",
        BackoffPolicy::CONTROLLER,
        &QueueMetrics::new(&registry),
    );
    queue.add("a");
    queue.add("b");
    drop(queue.next().await.unwrap());
    queue.add_rate_limited("c");
    let text = registry.encode(Format::Text);
    for line in [
        "workqueue_depth{name=\"AvailableConditionController\"} 1",
        "workqueue_adds_total{name=\"AvailableConditionController\"} 2",
        "workqueue_retries_total{name=\"AvailableConditionController\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
