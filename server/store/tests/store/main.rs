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

/// Makes a test of each behavior for each implementation.
macro_rules! suite {
    (of all: $($module:ident :: $behaviour:ident),* $(,)?) => {
        suite!(in_sqlite: Some(crate::harness::Sqlite::new()), $($module::$behaviour),*);
        suite!(in_postgres: crate::postgres::Postgres::direct(), $($module::$behaviour),*);
        suite!(behind_a_pooler: crate::postgres::Postgres::pooled().await, $($module::$behaviour),*);
        suite!(in_etcd: crate::etcd::Etcd::new(), $($module::$behaviour),*);
        suite!(past_the_cache of sqlite_alone: Some(crate::harness::Sqlite::new()), $($module::$behaviour),*);
        suite!(past_the_cache of postgres_alone: crate::postgres::Postgres::direct(), $($module::$behaviour),*);
        suite!(past_the_cache of pooled_postgres_alone: crate::postgres::Postgres::pooled().await, $($module::$behaviour),*);
    };
    // Implementations that give every operation its own revision.
    (of databases: $($module:ident :: $behaviour:ident),* $(,)?) => {
        suite!(ordered_in_sqlite: Some(crate::harness::Sqlite::new()), $($module::$behaviour),*);
        suite!(ordered_in_postgres: crate::postgres::Postgres::direct(), $($module::$behaviour),*);
        suite!(ordered_behind_a_pooler: crate::postgres::Postgres::pooled().await, $($module::$behaviour),*);
        suite!(past_the_cache of ordered_in_sqlite_alone: Some(crate::harness::Sqlite::new()), $($module::$behaviour),*);
        suite!(past_the_cache of ordered_in_postgres_alone: crate::postgres::Postgres::direct(), $($module::$behaviour),*);
    };
    (of those with a budget: $($module:ident :: $behaviour:ident),* $(,)?) => {
        suite!(budget_of_sqlite: Some(crate::harness::Sqlite::new()), $($module::$behaviour),*);
        suite!(budget_of_postgres: crate::postgres::Postgres::direct(), $($module::$behaviour),*);
    };
    // Caches no objects, so that everything is read from the database.
    (past_the_cache of $place:ident: $backend:expr, $($module:ident :: $behaviour:ident),*) => {
        #[cfg(test)]
        mod $place {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    if let Some(backend) = $backend {
                        let before = crate::harness::Backend::written_before(&backend);
                        let test = crate::$module::$behaviour(&backend);
                        let test = crate::harness::WRITTEN_BEFORE.scope(before, test);
                        crate::harness::bounded(crate::harness::past_the_cache(test)).await;
                    }
                }
            )*
        }
    };
    ($place:ident: $backend:expr, $($module:ident :: $behaviour:ident),*) => {
        #[cfg(test)]
        mod $place {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    if let Some(backend) = $backend {
                        let before = crate::harness::Backend::written_before(&backend);
                        let test = crate::$module::$behaviour(&backend);
                        crate::harness::bounded(crate::harness::WRITTEN_BEFORE.scope(before, test)).await;
                    }
                }
            )*
        }
    };
}

suite! {
    of databases:
    transactions::revisions_strictly_increase_and_a_txns_follow_one_another,
    transactions::a_txn_sees_its_own_earlier_operations,
    transactions::what_is_too_large_is_refused,
}

suite! {
    of all:
    transactions::expectations_are_checked,
    transactions::a_refused_txn_writes_nothing_and_fails_alone,
    transactions::of_many_concurrent_updates_of_one_revision_one_wins,
    transactions::a_committed_write_is_visible_at_once,
    transactions::any_text_is_a_name_and_an_owner,
    transactions::everything_is_there_after_reopening,
    transactions::a_closed_store_refuses_and_finishes_what_was_queued,
    watches::a_watch_gets_every_change_in_order_with_the_state_before,
    watches::a_watch_resumes_from_any_revision,
    watches::a_watch_resumes_over_a_restart,
    watches::a_watch_resumes_over_large_events,
    watches::a_watch_of_a_namespace_gets_only_its_changes,
    watches::a_watch_of_a_name_or_a_field_gets_what_enters_and_leaves_it,
    watches::changes_that_a_watch_is_not_about_do_not_wait_in_its_queue,
    watches::follow_gets_the_one_log_filtered,
    watches::a_slow_subscription_is_cut_and_nobody_else,
    watches::progress_moves_without_events,
    watches::a_closed_store_ends_watches_after_what_was_queued,
    watches::watches_started_during_a_storm_miss_nothing,
    history::exact_reads_give_the_state_of_their_revision,
    history::pages_of_an_exact_read_are_consistent_and_count_the_rest,
    history::compaction_forgets_history_and_keeps_the_state,
    history::dependents_follow_the_owner_references,
    history::what_is_being_deleted_is_found_in_memory_and_in_the_database,
    history::resources_in_a_namespace_follow_its_objects,
    history::objects_are_counted_by_resource,
}

suite! {
    of those with a budget:
    evictions::what_was_not_used_makes_room_and_comes_back,
    evictions::what_is_used_keeps_its_room_and_the_other_one_is_read_from_the_database,
    evictions::what_stays_by_wish_stays_and_what_grows_too_large_leaves,
    evictions::pages_count_how_many_follow_while_objects_come_and_go,
    evictions::pages_are_full_whatever_is_deleted_before_among_and_behind_them,
    evictions::nobody_notices_that_resources_come_and_go,
}
