//! Followers: changes of a resource as seen by controllers, during failures of the database.

use futures::StreamExt;
use portico_machinery::GroupResource;
use portico_registry::Change;
use portico_store::Store;

use crate::harness::{Harness, object};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Registry that cuts off followers as soon as three changes wait for them.
async fn harness() -> Harness {
    Harness::open_with_settings(|settings| settings.subscription_events = 2).await
}

async fn create_maps(harness: &Harness, prefix: &str) {
    for n in 0..4 {
        let map = object("ConfigMap", &format!("{prefix}-{n}"), "");
        assert_eq!(harness.post(MAPS, &map).await.code, 201);
    }
}

/// Waits for the complete list that a follower receives; returns its length.
async fn wait_relisted<T>(
    changes: &mut (impl StreamExt<Item = T> + Unpin),
    change_of: impl Fn(T) -> Change,
) -> usize {
    loop {
        let change = tokio::time::timeout(std::time::Duration::from_secs(60), changes.next()).await;
        if let Change::Relisted(all, _) = change_of(change.unwrap().unwrap()) {
            return all.len();
        }
    }
}

#[tokio::test]
async fn a_follower_retries_until_it_can_restart() {
    let harness = harness().await;
    let maps = GroupResource::new("", "configmaps");
    let mut changes = harness.registry.follow(&maps).await.unwrap().changes;
    create_maps(&harness, "a").await;
    harness.store.fail_snapshots(2);
    let object_count = wait_relisted(&mut changes, |change| change).await;
    assert_eq!((object_count, harness.store.failures_left()), (4, 0));
}

#[tokio::test]
async fn a_follower_of_several_resources_retries_until_it_can_restart() {
    let harness = harness().await;
    let resources = ["configmaps", "secrets"].map(|name| (name, GroupResource::new("", name)));
    let mut changes = harness.registry.follow_all(resources).await.unwrap().changes;
    create_maps(&harness, "b").await;
    // Reading the second resource fails, after the first was read.
    harness.store.fail_snapshots(1);
    let object_count = wait_relisted(&mut changes, |(_, change)| change).await;
    assert_eq!((object_count, harness.store.failures_left()), (4, 0));
}

#[tokio::test]
async fn a_follower_that_cannot_restart_ends_with_the_store() {
    let harness = harness().await;
    let maps = GroupResource::new("", "configmaps");
    let mut changes = harness.registry.follow(&maps).await.unwrap().changes;
    create_maps(&harness, "c").await;
    harness.store.fail_snapshots(usize::MAX);
    let store = harness.store.clone();
    let ended = async { while changes.next().await.is_some() {} };
    let ended = async { tokio::time::timeout(std::time::Duration::from_secs(60), ended).await };
    let closed = async {
        while harness.store.failures_left() == usize::MAX {
            tokio::task::yield_now().await;
        }
        store.close().await;
    };
    let (ended, ()) = tokio::join!(ended, closed);
    ended.expect("the feed ends when the store closes");
}
