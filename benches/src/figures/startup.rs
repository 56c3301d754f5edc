//! Time from exec to the first 200 of `/readyz`, on an empty data folder and on an existing one.

use std::path::Path;
use std::time::Instant;

use crate::certificates::trust_all_tls;
use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON, is_ready};
use crate::portico::command;
use crate::process::{Process, free_address, wait_until};
use crate::report::{Goal, Report};
use crate::statistics::median;
use crate::{BenchContext, Failure};

const NAME: &str = "startup";
const FIRST_MS: f64 = 150.0;
const AGAIN_MS: f64 = 100.0;

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let (mut first, mut again, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setting.options.rounds {
        let folder = setting.new_folder("startup-")?;
        first.push(once(&folder).await?);
        again.push(once(&folder).await?);
        if let Some(kube) = Kube::start(setting).await? {
            peer.push(kube.startup.as_secs_f64() * 1e3);
        }
    }
    report.add(NAME, "first start to /readyz 200, median", median(&first), "ms", Goal::AtMost(FIRST_MS));
    report.add(NAME, "start with a data folder, median", median(&again), "ms", Goal::AtMost(AGAIN_MS));
    if peer.is_empty() {
        report.skip("startup of kube-apiserver and etcd", SKIP_REASON);
    } else {
        report.add(NAME, "kube-apiserver and etcd, first start, median", median(&peer), "ms", Goal::None);
    }
    Ok(())
}

/// Returns the milliseconds of a start with default settings except for the ports.
pub(super) async fn once(folder: &Path) -> Result<f64, Failure> {
    let (https, grpc) = (free_address()?, free_address()?);
    let mut command = command(&folder.join("data"))?;
    command.arg(format!("--secure-port={}", https.port())).arg(format!("--control-address={grpc}"));
    let start = Instant::now();
    let mut process = Process::start(&mut command, &folder.join("log"))?;
    let anonymous = Endpoint { address: https, name: "localhost", tls: trust_all_tls() };
    wait_until("portico is ready", async || {
        process.check_alive()?;
        Ok(is_ready(&anonymous).await.then_some(()))
    })
    .await?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
