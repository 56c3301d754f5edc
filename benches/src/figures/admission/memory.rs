//! Memory of a policy of three expressions and its binding, by growth of the resident memory.

use std::time::Duration;

use super::configurations::{Configuration, Subject};
use super::contender::Contender;
use super::{NAME, activation};
use crate::kube::Kube;
use crate::portico::Portico;
use crate::report::{Goal, Report};
use crate::{BenchContext, Failure};

const POLICIES: usize = 500;
/// Policies created and removed before the measurement, to exclude one-time allocations.
const WARM_UP: usize = 20;
const KIB: f64 = 60.0;
/// Time after the creations for the release of temporary memory.
const RELEASE_TIME: Duration = Duration::from_secs(5);

pub(super) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    each(setting, &Contender::portico(setting, &portico)?, report).await?;
    drop(portico);
    match Kube::start(setting).await? {
        Some(kube) => each(setting, &Contender::kube(setting, &kube)?, report).await,
        None => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "hundreds")]
async fn each(setting: &BenchContext, contender: &Contender<'_>, report: &mut Report) -> Result<(), Failure> {
    let (mut client, webhook) = (contender.endpoint.client().await?, &contender.webhook);
    let first = Configuration::policies(WARM_UP, Subject::Other);
    activation::apply(setting, &mut client, webhook, &first).await?.remove(&mut client, webhook).await?;
    tokio::time::sleep(RELEASE_TIME).await;
    let before = contender.resident()?;
    let all = Configuration::policies(POLICIES, Subject::Other);
    activation::apply(setting, &mut client, webhook, &all).await?;
    tokio::time::sleep(RELEASE_TIME).await;
    let memory = (contender.resident()? - before).max(0.0) * 1024.0 / POLICIES as f64;
    let figure = format!("{}: memory of a policy", contender.name);
    report.add(NAME, figure, memory, "KiB", contender.goal(Goal::AtMost(KIB)));
    Ok(())
}
