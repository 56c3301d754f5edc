//! Tests of the bootstrap policy and of its delivery to authorizers.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use portico_controllers::rbac::bootstrap;
use portico_controllers::rbac::policy::PolicyFeed;

use crate::harness::Harness;

#[tokio::test]
async fn the_policy_is_in_force_once_all_of_it_was_handed_on() {
    let harness = Harness::open().await;
    let (feed, known) = (PolicyFeed::new(), Arc::new(Mutex::new(BTreeSet::new())));
    let sink = {
        let known = known.clone();
        move |_, changes: Vec<_>| known.lock().extend(changes.into_iter().map(|(key, _)| key))
    };
    let run = feed.clone().run(harness.registry.clone(), harness.tasks.clone(), sink);
    harness.tasks.spawn_critical("policy", run);
    feed.known().signaled().await;

    let made = bootstrap::reconcile(&harness.registry).await.unwrap();
    let never_run = PolicyFeed::new();
    assert!(never_run.reached(made).now_or_never().is_none(), "nothing was handed on there");
    feed.reached(made).await;
    let wanted: BTreeSet<_> = bootstrap::entries().unwrap().into_iter().map(|entry| entry.key).collect();
    assert!(wanted.is_subset(&known.lock()));

    let again = bootstrap::reconcile(&harness.registry).await.unwrap();
    assert_eq!(again, made, "what is complete is left as it is");
}
