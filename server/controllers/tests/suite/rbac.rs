//! Tests of the bootstrap policy and of its delivery to authorizers.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use portico_controllers::rbac::bootstrap;
use portico_controllers::rbac::policy::PolicyFeed;

use crate::harness::Harness;

#[tokio::test]
async fn the_policy_applies_once_all_of_it_is_delivered() {
    let harness = Harness::open().await;
    let (feed, delivered) = (PolicyFeed::new(), Arc::new(Mutex::new(BTreeSet::new())));
    let sink = {
        let delivered = delivered.clone();
        move |_, changes: Vec<_>| delivered.lock().extend(changes.into_iter().map(|(key, _)| key))
    };
    let run = feed.clone().run(harness.registry.clone(), harness.tasks.clone(), sink);
    harness.tasks.spawn_critical("policy", run);
    feed.synced().signaled().await;

    let revision = bootstrap::reconcile(&harness.registry).await.unwrap();
    let never_run = PolicyFeed::new();
    assert!(
        never_run.wait_delivered(revision).now_or_never().is_none(),
        "a feed that does not run delivers nothing"
    );
    feed.wait_delivered(revision).await;
    let expected: BTreeSet<_> =
        bootstrap::policy_objects().unwrap().into_iter().map(|entry| entry.key).collect();
    assert!(expected.is_subset(&delivered.lock()));

    let second_revision = bootstrap::reconcile(&harness.registry).await.unwrap();
    assert_eq!(second_revision, revision, "a complete policy is not written again");
}
