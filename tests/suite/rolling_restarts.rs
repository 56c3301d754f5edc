//! Every process of two control services and two facades is restarted, one after the other, while clients read, list, watch and
//! write: no read fails, writes only succeed or get a retryable refusal, and watches miss no event.

mod load;

use std::path::Path;
use std::time::Instant;

use portico_tests::{
    Backend, BalancedClient, Launch, Portico, PostgresServer, binary, eventually, report_measurement,
    wait_until,
};

use load::Load;

/// Starts two control services of one database.
pub(crate) async fn servers(launch: impl Fn(Launch) -> Launch) -> Option<[Portico; 2]> {
    let server = PostgresServer::shared()?;
    let url = server.url(&server.create_database());
    let start = || launch(Launch::server().arg("--database-url").arg(&url)).start();
    let (first, second) = tokio::join!(start(), start());
    Some([first, second])
}

/// Waits until a facade can use both control services.
pub(crate) async fn wait_for_both(facade: &Portico) {
    eventually("the facade may use both control services", async || {
        let ready = facade.admin().get("/readyz?verbose").await.text();
        if ready.contains("2 of 2 serve") { Ok(()) } else { Err(ready) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_restarted_under_load_and_no_read_fails() {
    replace_every_process(binary(), binary()).await;
}

/// Replaces every process of a build by another build, or by the same, one after the other.
pub(crate) async fn replace_every_process(before: &Path, after: &Path) {
    let Some(mut servers) = servers(|launch| launch.program_path(before)).await else { return };
    // Load balancers can see that it is not ready before it refuses connections.
    let launch = |first: usize| {
        let facade = Launch::facade_of_all(&[&servers[first], &servers[1 - first]]).program_path(before);
        facade.arg("--shutdown-delay-duration=2s")
    };
    let (one, other) = tokio::join!(launch(0).start(), launch(1).start());
    let mut facades = [one, other];
    let backend = Backend::start("rolling.example.com").await;
    facades[0].admin().post(portico_tests::objects::API_SERVICES, &backend.api_service()).await;
    for facade in &facades {
        let admin = facade.admin();
        wait_until("the facade routes to the backend", async || {
            admin.get(&backend.path("/flunders")).await.status == 200
        })
        .await;
        wait_for_both(facade).await;
    }
    let balanced = BalancedClient::new(facades.iter().map(Portico::admin).collect());
    let load = Load::new(balanced, backend.path("/flunders"));
    let restarts = async {
        load.wait_for_progress().await;
        for server in &mut servers {
            let begin = Instant::now();
            server.stop().await;
            report_measurement(&format!("a control service has stopped after {:?}", begin.elapsed()));
            server.restart_with(after).await;
            for facade in &facades {
                wait_for_both(facade).await;
            }
            load.wait_for_progress().await;
        }
        load.permit_watch_ends();
        for facade in &mut facades {
            facade.stop().await;
            facade.restart_with(after).await;
            wait_for_both(facade).await;
            load.wait_for_progress().await;
        }
        load.stop();
    };
    let (report, ()) = tokio::join!(load.run(), restarts);
    report_measurement(&report.to_string());
    assert_eq!(report.failures, Vec::<String>::new());
    assert!(report.reads > 100 && report.written > 20, "{report}");
}
