//! Every process of two control services and two facades is restarted, one after the other, while clients read, list, watch and
//! write: no read fails, no write is answered by anything but success or a wish for patience, and watches miss nothing.

mod load;

use std::path::Path;
use std::time::Instant;

use portico_tests::{
    Backend, Balanced, Launch, Portico, PostgresServer, binary, eventually, measured, until,
};

use load::Load;

/// Two control services of one database.
pub(crate) async fn servers(launch: impl Fn(Launch) -> Launch) -> Option<[Portico; 2]> {
    let server = PostgresServer::shared()?;
    let url = server.url(&server.database());
    let start = || launch(Launch::server().arg("--database-url").arg(&url)).start();
    let (first, second) = tokio::join!(start(), start());
    Some([first, second])
}

/// Waits until a facade may use both control services.
pub(crate) async fn knows_both(facade: &Portico) {
    eventually("the facade may use both control services", async || {
        let ready = facade.admin().get("/readyz?verbose").await.text();
        if ready.contains("2 of 2 serve") { Ok(()) } else { Err(ready) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_restarted_under_load_and_no_read_fails() {
    every_process_is_replaced(binary(), binary()).await;
}

/// Every process of a build is ended and started again by another build, or by the same, one after the other.
pub(crate) async fn every_process_is_replaced(before: &Path, after: &Path) {
    let Some(mut servers) = servers(|launch| launch.by(before)).await else { return };
    // Load balancers see that it is not ready before it takes no more connections.
    let launch = |first: usize| {
        let facade = Launch::facade_of(&[&servers[first], &servers[1 - first]]).by(before);
        facade.arg("--shutdown-delay-duration=2s")
    };
    let (one, other) = tokio::join!(launch(0).start(), launch(1).start());
    let mut facades = [one, other];
    let backend = Backend::start("rolling.example.com").await;
    facades[0].admin().post(portico_tests::objects::API_SERVICES, &backend.api_service()).await;
    for facade in &facades {
        let admin = facade.admin();
        until("it is routed", async || admin.get(&backend.path("/flunders")).await.status == 200).await;
        knows_both(facade).await;
    }
    let balanced = Balanced::new(facades.iter().map(Portico::admin).collect());
    let load = Load::new(balanced, backend.path("/flunders"));
    let restarts = async {
        load.goes_on().await;
        for server in &mut servers {
            let begin = Instant::now();
            server.stop().await;
            measured(&format!("a control service has stopped after {:?}", begin.elapsed()));
            server.restart_by(after).await;
            for facade in &facades {
                knows_both(facade).await;
            }
            load.goes_on().await;
        }
        load.watches_may_end();
        for facade in &mut facades {
            facade.stop().await;
            facade.restart_by(after).await;
            knows_both(facade).await;
            load.goes_on().await;
        }
        load.stop();
    };
    let (report, ()) = tokio::join!(load.run(), restarts);
    measured(&report.to_string());
    assert_eq!(report.failures, Vec::<String>::new());
    assert!(report.reads > 100 && report.written > 20, "{report}");
}
