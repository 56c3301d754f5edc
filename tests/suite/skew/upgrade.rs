//! Two control services of one database and two facades are replaced by those of a newer build, one process after the other, under
//! load.

use portico_tests::{Backend, Balanced, Launch, Portico, measured, objects::API_SERVICES, until};

use super::Builds;
use crate::rolling_restarts::load::Load;
use crate::rolling_restarts::{knows_both, servers};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_upgraded_under_load_and_no_read_fails() {
    let Some(builds) = Builds::with("server", "--database-url") else { return };
    let Some(mut servers) = servers(|launch| launch.by(builds.older)).await else { return };
    // Load balancers see that it is not ready before it takes no more connections.
    let launch = |first: usize| {
        let facade = Launch::facade_of(&[&servers[first], &servers[1 - first]]).by(builds.older);
        facade.arg("--shutdown-delay-duration=2s")
    };
    let (one, other) = tokio::join!(launch(0).start(), launch(1).start());
    let mut facades = [one, other];
    let backend = Backend::start("rolling.example.com").await;
    facades[0].admin().post(API_SERVICES, &backend.api_service()).await;
    for facade in &facades {
        let admin = facade.admin();
        until("it is routed", 60, async || admin.get(&backend.path("/flunders")).await.status == 200).await;
        knows_both(facade).await;
    }
    let balanced = Balanced::new(facades.iter().map(Portico::admin).collect());
    let load = Load::new(balanced, backend.path("/flunders"));
    let upgrades = async {
        load.goes_on().await;
        for server in &mut servers {
            server.stop().await;
            server.restart_by(builds.newer).await;
            for facade in &facades {
                knows_both(facade).await;
            }
            load.goes_on().await;
        }
        load.watches_may_end();
        for facade in &mut facades {
            facade.stop().await;
            facade.restart_by(builds.newer).await;
            knows_both(facade).await;
            load.goes_on().await;
        }
        load.stop();
    };
    let (report, ()) = tokio::join!(load.run(), upgrades);
    measured(&report.to_string());
    assert_eq!(report.failures, Vec::<String>::new());
    assert!(report.reads > 100 && report.written > 20, "{report}");
}
