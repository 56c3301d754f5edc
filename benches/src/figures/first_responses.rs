//! Time of the first responses of a new server: `kubectl get pods` without a cache, and OpenAPI documents, which are
//! created on first use.

use std::time::Instant;

use http::HeaderValue;
use http::header::ACCEPT;

use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::portico::Portico;
use crate::report::{Goal, Report};
use crate::statistics::median;
use crate::{BenchContext, Failure};

const NAME: &str = "cold";
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PODS: &str = "/api/v1/namespaces/default/pods?limit=500";

/// Consecutive requests over a new connection, and their maximum total time in milliseconds.
struct Scene {
    name: &'static str,
    requests: &'static [(&'static str, &'static str)],
    max_ms: f64,
}

const SCENES: [Scene; 3] = [
    Scene {
        name: "kubectl get pods with a cold cache",
        requests: &[("/api", AGGREGATED), ("/apis", AGGREGATED), (PODS, TABLE)],
        max_ms: 60.0,
    },
    Scene {
        name: "OpenAPI version 2",
        requests: &[("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")],
        max_ms: 150.0,
    },
    Scene {
        name: "OpenAPI version 3 of apps/v1",
        requests: &[("/openapi/v3/apis/apps/v1", "application/json")],
        max_ms: 15.0,
    },
];

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    for scene in &SCENES {
        let mut times = Vec::new();
        for _ in 0..setting.options.rounds {
            let portico = Portico::start(setting).await?;
            times.push(once(&portico.endpoint(setting)?, scene).await?);
        }
        let figure = format!("{}, first time, median", scene.name);
        report.add(NAME, figure, median(&times), "ms", Goal::AtMost(scene.max_ms));
    }
    let Some(kube) = Kube::start(setting).await? else {
        report.skip("the same on kube-apiserver", SKIP_REASON);
        return Ok(());
    };
    for scene in &SCENES {
        let took = once(&kube.endpoint(setting)?, scene).await?;
        report.add(NAME, format!("kube-apiserver: {}, first time", scene.name), took, "ms", Goal::None);
    }
    Ok(())
}

/// Returns the milliseconds from the first byte of the first request to the last byte of the last
/// response, without the handshake.
async fn once(endpoint: &Endpoint, scene: &Scene) -> Result<f64, Failure> {
    let mut client = endpoint.client().await?;
    let start = Instant::now();
    for (path, accept) in scene.requests {
        let mut request = endpoint.get(path)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        let (status, body) = client.exchange(request).await?;
        if !status.is_success() {
            return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&body)).into());
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
