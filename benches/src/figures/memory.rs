//! Resident memory of an idle all-in-one process.

use std::time::Duration;

use crate::kube::{Kube, SKIP_REASON};
use crate::portico::Portico;
use crate::report::{Goal, Report};
use crate::statistics::median;
use crate::{BenchContext, Failure};

const NAME: &str = "memory";
const IDLE_MIB: f64 = 30.0;
/// Time after the start for the release of temporary memory.
const RELEASE_TIME: Duration = Duration::from_secs(5);

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let (mut resident, mut anonymous) = (Vec::new(), Vec::new());
    for _ in 0..setting.options.rounds.min(3) {
        let portico = Portico::start(setting).await?;
        tokio::time::sleep(RELEASE_TIME).await;
        resident.push(portico.process.resident()?);
        anonymous.push(portico.process.anonymous()?);
    }
    report.add(NAME, "idle, resident, median", median(&resident), "MiB", Goal::AtMost(IDLE_MIB));
    report.add(NAME, "of it, not backed by a file", median(&anonymous), "MiB", Goal::None);
    let Some(kube) = Kube::start(setting).await? else {
        report.skip("memory of kube-apiserver and etcd", SKIP_REASON);
        return Ok(());
    };
    tokio::time::sleep(RELEASE_TIME).await;
    let both = kube.server.resident()? + kube.etcd.resident()?;
    report.add(NAME, "kube-apiserver and etcd, idle, resident", both, "MiB", Goal::None);
    Ok(())
}
