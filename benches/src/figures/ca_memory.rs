//! Memory with 5,000 APIServices that trust 50 different CAs, after one request to each.

use std::time::Duration;

use http::StatusCode;
use portico_kit::pki::PemPair;

use crate::backend::Backend;
use crate::certificates::issue_from_new_ca;
use crate::portico::Portico;
use crate::registrations::{Registration, create, wait_available};
use crate::report::{Goal, Report};
use crate::{BenchContext, Failure};

const NAME: &str = "ca-memory";
const API_SERVICES: usize = 5000;
const AUTHORITIES: usize = 50;
const MAX_MIB: f64 = 100.0;
/// Time for the release of memory of the requests.
const RELEASE_TIME: Duration = Duration::from_secs(3);

/// Server name of a backend, its CA and its certificate.
struct Issuer {
    name: String,
    ca_pem: String,
    pair: PemPair,
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let issuers = (0..AUTHORITIES).map(issuer).collect::<Result<Vec<_>, Failure>>()?;
    let pairs: Vec<_> = issuers.iter().map(|issuer| (issuer.name.clone(), issuer.pair.clone())).collect();
    let backend = Backend::start(setting.certificates.backend_tls(&pairs)?).await?;
    let portico = Portico::start(setting).await?;
    let all = registrations(&issuers, &backend);
    let control = portico.control()?;
    create(std::slice::from_ref(&control), 16, all.clone()).await?;
    wait_available(&control, all.len()).await?;
    report.add(NAME, "5,000 APIServices available, resident", portico.process.resident()?, "MiB", Goal::None);

    let mut client = portico.endpoint(setting)?.client().await?;
    for registration in &all {
        let status = client.get(&registration.path()).await?;
        if status != StatusCode::OK {
            return Err(format!("{}: {status}", registration.path()).into());
        }
    }
    tokio::time::sleep(RELEASE_TIME).await;
    let resident = portico.process.resident()?;
    report.add(
        NAME,
        "5,000 APIServices, 50 CAs, after one request to each, resident",
        resident,
        "MiB",
        Goal::AtMost(MAX_MIB),
    );
    report.add(NAME, "of that memory, not backed by a file", portico.process.anonymous()?, "MiB", Goal::None);
    Ok(())
}

fn issuer(at: usize) -> Result<Issuer, Failure> {
    let name = format!("backend{at}.default.svc");
    let (ca_pem, pair) = issue_from_new_ca(&name)?;
    Ok(Issuer { name, ca_pem, pair })
}

fn registrations(issuers: &[Issuer], backend: &Backend) -> Vec<Registration> {
    let to_registration = |(at, issuer): (usize, &Issuer)| Registration {
        group: format!("ca{at}.example.com"),
        url: Some(backend.url()),
        server_name: issuer.name.clone(),
        ca_pem: issuer.ca_pem.clone(),
    };
    issuers.iter().cycle().take(API_SERVICES).enumerate().map(to_registration).collect()
}
