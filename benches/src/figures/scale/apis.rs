//! APIServices and definitions: memory, and time until all of them are served.

use http::Method;

use super::super::definitions::{collection, serve};
use crate::portico::Portico;
use crate::registrations::{Registration, create, wait_checked};
use crate::report::{Goal, Report};
use crate::{BenchContext, Failure};

const NAME: &str = "scale";
const API_SERVICES: [usize; 3] = [2_500, 5_000, 10_000];
const CREATORS: usize = 16;
const DEFINITIONS: [usize; 4] = [2_500, 5_000, 10_000, 20_000];
/// Definitions for each one that is used.
const USED: usize = 100;
const DEFINITIONS_MIB: f64 = 600.0;

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    api_services(setting, report).await?;
    definitions(setting, report).await
}

/// Each APIService refers to a Service that does not exist, which its condition must report.
async fn api_services(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let control = portico.control()?;
    let mut existing = 0;
    for size in API_SERVICES {
        let group = |at: usize| Registration::without_backend(format!("g{at}.example.com"), "");
        let created = create(std::slice::from_ref(&control), CREATORS, (existing..size).map(group).collect());
        let rate = (size - existing) as f64 / created.await?.time.as_secs_f64();
        wait_checked(&control, size).await?;
        existing = size;
        report.add(NAME, format!("{size} APIServices: the last half created"), rate, "/s", Goal::None);
        let resident = portico.process.resident()?;
        report.add(NAME, format!("{size} APIServices: resident"), resident, "MiB", Goal::None);
    }
    Ok(())
}

/// Creates definitions with a hundred properties; creates and lists objects of one in a hundred of them.
async fn definitions(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let mut portico = Portico::start(setting).await?;
    let mut existing = 0;
    for size in DEFINITIONS {
        let endpoint = portico.endpoint(setting)?;
        let took = serve(&endpoint, existing..size).await?;
        let rate = (size - existing) as f64 / took * 1e3;
        report.add(NAME, format!("{size} definitions: the last half served"), rate, "/s", Goal::None);
        let (again, ready) = Portico::restart(setting, portico.end(), &[]).await?;
        portico = again;
        report.add(NAME, format!("{size} definitions: start until ready"), ready, "ms", Goal::None);
        let mut client = portico.endpoint(setting)?.client().await?;
        for at in (0..size).step_by(USED) {
            let (path, object) = (collection(at), thing(at, size));
            let path = path.replace("/v1/", "/v1/namespaces/default/");
            client.send_ok(Method::POST, &path, object).await?;
            client.send_ok(Method::GET, &path, String::new()).await?;
        }
        existing = size;
        let goal = if size == 20_000 { Goal::AtMost(DEFINITIONS_MIB) } else { Goal::None };
        let resident = portico.process.resident()?;
        report.add(NAME, format!("{size} definitions, 1 % used: resident"), resident, "MiB", goal);
    }
    Ok(())
}

/// Returns an object of a definition; `run` makes its name unique.
fn thing(at: usize, run: usize) -> String {
    let group = collection(at);
    let group = group.trim_start_matches("/apis/").split('/').next().unwrap_or_default();
    format!(
        r#"{{"apiVersion":"{group}/v1","kind":"Thing{at}","metadata":{{"name":"one-of-{run}"}},"spec":{{"property0":"x"}}}}"#
    )
}
