//! What of backends is in use, as metrics that are read when they are asked for.
//!
//! They name Services and addresses, so there is a bound: what comes after [`MAX_BACKENDS`] or [`MAX_ENDPOINTS`] by name is left out,
//! and how much that is stands in a metric of its own.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::Weak;

use portico_kit::metrics::Registry;
use portico_machinery::route::ServiceReference;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::registry::Transports;
use super::usage::Usage;
use crate::backend_counts::BackendCounts;

/// Services that metrics name.
const MAX_BACKENDS: usize = 500;
/// Addresses that metrics name.
const MAX_ENDPOINTS: usize = 1000;

/// See the module.
#[derive(Debug)]
pub(crate) struct UsageMetrics {
    transports: Weak<Transports>,
}

#[derive(Default)]
struct OfBackend {
    /// Requests under way, and how many there may be; nothing while no transport leads there.
    requests: Option<(usize, usize)>,
    waits: u64,
    refused: u64,
}

#[derive(Default)]
struct OfEndpoint {
    weight: Option<u32>,
    open: usize,
}

/// Several routes may lead to one Service in different ways: together they are one series.
#[derive(Default)]
struct Sums {
    backends: BTreeMap<String, OfBackend>,
    endpoints: BTreeMap<(String, String), OfEndpoint>,
}

impl UsageMetrics {
    /// Adds them to a registry, for as long as there are these transports.
    pub(crate) fn register(registry: &Registry, transports: Weak<Transports>) {
        registry.collector(Box::new(Self { transports }));
    }
}

impl Sums {
    fn count(&mut self, counts: &BackendCounts) {
        let of = self.backends.entry(label(&counts.service)).or_default();
        (of.waits, of.refused) = counts.read();
    }

    fn add(&mut self, usage: Usage) {
        let service = label(&usage.service);
        let of = self.backends.entry(service.clone()).or_default();
        let (in_flight, most) = of.requests.unwrap_or_default();
        of.requests = Some((in_flight + usage.in_flight, most + usage.most));
        for endpoint in usage.endpoints {
            let of = self.endpoints.entry((service.clone(), endpoint.endpoint)).or_default();
            of.weight = of.weight.max(endpoint.weight);
            of.open += endpoint.open;
        }
    }

    fn left_out(&self) -> usize {
        self.backends.len().saturating_sub(MAX_BACKENDS) + self.endpoints.len().saturating_sub(MAX_ENDPOINTS)
    }

    fn backends(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help): (&str, &str),
        metric: impl Fn(&OfBackend) -> Option<Value>,
    ) -> Result<(), Error> {
        let series = self
            .backends
            .iter()
            .take(MAX_BACKENDS)
            .filter_map(|(service, of)| Some(([("service", service.as_str())], metric(of)?)));
        encode(encoder, (name, help), series)
    }

    fn endpoints(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help): (&str, &str),
        metric: impl Fn(&OfEndpoint) -> Option<Value>,
    ) -> Result<(), Error> {
        let series = self.endpoints.iter().take(MAX_ENDPOINTS).filter_map(|((service, endpoint), of)| {
            Some(([("service", service.as_str()), ("endpoint", endpoint.as_str())], metric(of)?))
        });
        encode(encoder, (name, help), series)
    }
}

fn label(service: &ServiceReference) -> String {
    format!("{}/{}:{}", service.namespace, service.name, service.port)
}

#[derive(Clone, Copy)]
enum Value {
    Gauge(i64),
    Counter(u64),
}

fn gauge(value: usize) -> Value {
    Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX))
}

fn encode<'a, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    series: impl Iterator<Item = ([(&'a str, &'a str); N], Value)>,
) -> Result<(), Error> {
    let mut series = series.peekable();
    let Some((_, first)) = series.peek() else { return Ok(()) };
    let kind = match first {
        Value::Gauge(_) => MetricType::Gauge,
        Value::Counter(_) => MetricType::Counter,
    };
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in series {
        let one = family.encode_family(&labels)?;
        match value {
            Value::Gauge(value) => ConstGauge::new(value).encode(one)?,
            Value::Counter(value) => ConstCounter::new(value).encode(one)?,
        }
    }
    Ok(())
}

impl Collector for UsageMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let Some(transports) = self.transports.upgrade() else { return Ok(()) };
        let mut sums = Sums::default();
        transports.usage().into_iter().for_each(|usage| sums.add(usage));
        transports.counts.all().iter().for_each(|counts| sums.count(counts));
        let cx = &mut encoder;
        sums.backends(
            cx,
            ("portico_proxy_backend_requests", "Requests under way to a backend, by Service"),
            |of| of.requests.map(|(in_flight, _)| gauge(in_flight)),
        )?;
        sums.backends(
            cx,
            ("portico_proxy_backend_max_requests", "Requests that may be under way to a backend, by Service"),
            |of| of.requests.map(|(_, most)| gauge(most)),
        )?;
        sums.backends(
            cx,
            (
                "portico_proxy_backend_connection_waits",
                "Requests that had to wait until a connection to a backend was open, by Service",
            ),
            |of| Some(Value::Counter(of.waits)),
        )?;
        sums.backends(
            cx,
            (
                "portico_proxy_backend_refused_requests",
                "Requests that were refused because too many were under way to a backend, by Service",
            ),
            |of| Some(Value::Counter(of.refused)),
        )?;
        sums.endpoints(
            cx,
            (
                "portico_proxy_backend_connections",
                "Open connections to an address of a backend, by Service and address",
            ),
            |of| Some(gauge(of.open)),
        )?;
        sums.endpoints(
            cx,
            (
                "portico_proxy_backend_weight",
                "The weight of an address of a backend whose policy has weights, by Service and address",
            ),
            |of| of.weight.map(|weight| Value::Gauge(i64::from(weight))),
        )?;
        let (name, help) = (
            "portico_proxy_backend_series_left_out",
            "Backends and addresses that are too many to be named in metrics",
        );
        let left_out = i64::try_from(sums.left_out()).unwrap_or(i64::MAX);
        ConstGauge::new(left_out).encode(cx.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }
}
