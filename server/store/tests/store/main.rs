//! Shared test suite of the store: runs the same tests with every implementation of `Store`.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod archive_copies;
#[cfg(test)]
mod backups;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod damaged_keys;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod durable;
#[cfg(test)]
mod etcd;
#[cfg(test)]
mod etcd_cluster;
#[cfg(test)]
mod etcd_copies;
#[cfg(test)]
mod evictions;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod history;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod model;
#[cfg(test)]
mod places;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod reseal;
#[cfg(test)]
mod resumes;
#[cfg(test)]
mod sealed;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod space;
#[cfg(test)]
mod sqlite;
#[cfg(test)]
mod transactions;
#[cfg(test)]
mod unopened;
#[cfg(test)]
mod unreadable;
#[cfg(test)]
mod vanished;
#[cfg(test)]
mod watches;

/// Creates one test per listed function and implementation.
macro_rules! suite {
    (for all: $($module:ident :: $test_name:ident),* $(,)?) => {
        suite!(cached_sqlite: Some(crate::harness::Sqlite::new()), $($module::$test_name),*);
        suite!(cached_postgres: crate::postgres::Postgres::direct(), $($module::$test_name),*);
        suite!(cached_pooled_postgres: crate::postgres::Postgres::pooled().await, $($module::$test_name),*);
        suite!(cached_etcd: crate::etcd::Etcd::new(), $($module::$test_name),*);
        suite!(uncached variant uncached_sqlite: Some(crate::harness::Sqlite::new()), $($module::$test_name),*);
        suite!(uncached variant uncached_postgres: crate::postgres::Postgres::direct(), $($module::$test_name),*);
        suite!(uncached variant uncached_pooled_postgres: crate::postgres::Postgres::pooled().await, $($module::$test_name),*);
    };
    // Implementations that give every operation its own revision.
    (for databases: $($module:ident :: $test_name:ident),* $(,)?) => {
        suite!(ordered_sqlite: Some(crate::harness::Sqlite::new()), $($module::$test_name),*);
        suite!(ordered_postgres: crate::postgres::Postgres::direct(), $($module::$test_name),*);
        suite!(ordered_pooled_postgres: crate::postgres::Postgres::pooled().await, $($module::$test_name),*);
        suite!(uncached variant ordered_uncached_sqlite: Some(crate::harness::Sqlite::new()), $($module::$test_name),*);
        suite!(uncached variant ordered_uncached_postgres: crate::postgres::Postgres::direct(), $($module::$test_name),*);
    };
    (for stores with a budget: $($module:ident :: $test_name:ident),* $(,)?) => {
        suite!(budgeted_sqlite: Some(crate::harness::Sqlite::new()), $($module::$test_name),*);
        suite!(budgeted_postgres: crate::postgres::Postgres::direct(), $($module::$test_name),*);
    };
    // Caches no objects, so that all reads use the database.
    (uncached variant $variant_name:ident: $backend:expr, $($module:ident :: $test_name:ident),*) => {
        #[cfg(test)]
        mod $variant_name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test_name() {
                    if let Some(backend) = $backend {
                        let initial_writes = crate::harness::Backend::initial_writes(&backend);
                        let test = crate::$module::$test_name(&backend);
                        let test = crate::harness::INITIAL_WRITES.scope(initial_writes, test);
                        crate::harness::bounded(crate::harness::without_cache(test)).await;
                    }
                }
            )*
        }
    };
    ($variant_name:ident: $backend:expr, $($module:ident :: $test_name:ident),*) => {
        #[cfg(test)]
        mod $variant_name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test_name() {
                    if let Some(backend) = $backend {
                        let initial_writes = crate::harness::Backend::initial_writes(&backend);
                        let test = crate::$module::$test_name(&backend);
                        crate::harness::bounded(crate::harness::INITIAL_WRITES.scope(initial_writes, test)).await;
                    }
                }
            )*
        }
    };
}

suite! {
    for databases:
    transactions::revisions_strictly_increase_and_are_consecutive_within_a_txn,
    transactions::a_txn_sees_its_own_earlier_operations,
    transactions::oversized_txns_are_rejected,
}

suite! {
    for all:
    transactions::preconditions_are_checked,
    transactions::a_rejected_txn_writes_nothing_and_does_not_affect_other_txns,
    transactions::one_of_many_concurrent_updates_of_a_revision_succeeds,
    transactions::a_committed_write_is_immediately_visible,
    transactions::names_and_owner_uids_may_contain_any_text,
    transactions::a_reopened_store_has_the_same_state,
    transactions::a_closed_store_finishes_queued_writes_and_rejects_new_ones,
    watches::a_watch_receives_all_changes_in_order_with_previous_states,
    watches::a_watch_resumes_from_any_revision,
    watches::a_watch_resumes_after_a_restart,
    watches::a_watch_resumes_across_large_events,
    watches::a_watch_of_a_namespace_receives_only_its_changes,
    watches::a_filtered_watch_receives_objects_that_start_or_stop_matching,
    watches::changes_that_a_watch_does_not_select_are_not_queued,
    watches::follow_receives_the_filtered_log,
    watches::only_the_slow_subscription_is_ended,
    watches::progress_advances_without_events,
    watches::a_closed_store_ends_watches_after_queued_events,
    watches::watches_started_during_many_writes_miss_no_event,
    history::exact_reads_return_the_state_of_their_revision,
    history::pages_of_an_exact_read_are_consistent_and_count_the_remaining_objects,
    history::compaction_deletes_history_but_not_the_current_state,
    history::dependents_follow_the_owner_references,
    history::terminating_objects_are_found_in_memory_and_in_the_database,
    history::resources_in_a_namespace_follow_its_objects,
    history::objects_are_counted_by_resource,
}

suite! {
    for stores with a budget:
    evictions::idle_resources_are_evicted_and_reloaded,
    evictions::used_resources_are_not_evicted_and_others_are_read_from_the_database,
    evictions::pinned_resources_stay_cached_and_resources_that_grow_too_large_are_evicted,
    evictions::pages_count_the_remaining_objects_during_changes,
    evictions::pages_are_full_despite_deleted_objects,
    evictions::evictions_are_invisible_to_readers_writers_and_watchers,
}
