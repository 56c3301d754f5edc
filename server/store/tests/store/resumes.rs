//! Tests of many watches that resume concurrently.

use std::pin::pin;
use std::task::Poll;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use portico_store::{Change, Precondition, Scope, Txn};

use crate::harness::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_reads_do_not_wait_for_many_resuming_watches() {
    const WATCHES: usize = 32;
    for connections in [2, 3] {
        let backend = Sqlite::new();
        let tune = |settings: &mut portico_store::Settings| {
            settings.ring_events = 1;
            settings.read_connections = connections;
        };
        let store = backend.open_with(&tune).await;
        let put = |n| {
            let key = key(&format!("a/{}", n % 7));
            Txn::single(key.clone(), Precondition::Any, Change::Put(value(&key, "x")))
        };
        assert!(store.commit((0..600).map(put).collect()).await.iter().all(Result::is_ok));
        let resumed = (0..WATCHES).map(|_| {
            let mut watch = store.watch(Scope::all(&config_maps()), 1).unwrap();
            async move { take(&mut watch, 600).await.len() }
        });
        let mut watches: FuturesUnordered<_> = resumed.collect();
        let mut done = 0;
        // After this, each watch has requested its first page. On a busy machine one may have received all pages.
        if let Poll::Ready(Some(events)) = futures::poll!(watches.next()) {
            done += usize::from(events == 600);
        }
        // More sequential reads than a watch needs to resume.
        for revision in 300..310 {
            let wanted = key("a/0");
            let mut read = pin!(store.get_at(&wanted, revision));
            let record = loop {
                tokio::select! {
                    biased;
                    record = &mut read => break record.unwrap().unwrap(),
                    Some(events) = watches.next() => done += usize::from(events == 600),
                }
            };
            assert!(record.revision <= revision);
        }
        assert!(done < WATCHES / 2, "{done} of {WATCHES} watches finished before the reads");
        while let Some(events) = watches.next().await {
            done += usize::from(events == 600);
        }
        assert_eq!(done, WATCHES);
    }
}
