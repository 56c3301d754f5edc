//! Two control services of one database and two facades are replaced by those of a newer build, one
//! process after the other, under load.

use super::Builds;
use crate::rolling_restarts::replace_every_process;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_upgraded_under_load_and_no_read_fails() {
    let Some(builds) = Builds::with("server", "--database-url") else { return };
    replace_every_process(builds.older, builds.newer).await;
}
