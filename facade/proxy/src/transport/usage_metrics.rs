//! Metrics about the use of backends, collected at each scrape.
//!
//! Labels contain Services and addresses, so the number of series is bounded: series beyond [`MAX_BACKENDS`] or
//! [`MAX_ENDPOINTS`], in the order of names, are omitted and counted in a separate metric.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::Weak;

use portico_kit::metrics::{Desc, Registry};
use portico_machinery::route::ServiceReference;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::registry::Transports;
use super::usage::Usage;
use crate::backend_counts::BackendCounts;

/// Services that the metrics of backends list.
///
/// Limit (Backends): further ones are counted in `portico_proxy_backend_series_left_out`.
const MAX_BACKENDS: usize = 500;
/// Addresses that the metrics of backends list.
///
/// Limit (Backends): further ones are counted in `portico_proxy_backend_series_left_out`.
const MAX_ENDPOINTS: usize = 1000;

/// Collector of the use of backends.
#[derive(Debug)]
pub(crate) struct UsageMetrics {
    transports: Weak<Transports>,
}

#[derive(Default)]
struct BackendSeries {
    /// Requests in flight, and their limit; `None` while no transport leads to the backend.
    requests: Option<(usize, usize)>,
    waits: u64,
    refused: u64,
}

#[derive(Default)]
struct EndpointSeries {
    weight: Option<u32>,
    open: usize,
}

/// Sums by Service: several routes may lead to one Service in different ways, and form one series.
#[derive(Default)]
struct Sums {
    backends: BTreeMap<String, BackendSeries>,
    endpoints: BTreeMap<(String, String), EndpointSeries>,
}

impl UsageMetrics {
    /// Registers the metrics; they exist as long as the transports.
    pub(crate) fn register(registry: &Registry, transports: Weak<Transports>) {
        registry.register_collector(Box::new(Self { transports }));
    }
}

impl Sums {
    fn count(&mut self, counts: &BackendCounts) {
        let series = self.backends.entry(label(&counts.service)).or_default();
        (series.waits, series.refused) = counts.read();
    }

    fn add(&mut self, usage: Usage) {
        let service = label(&usage.service);
        let series = self.backends.entry(service.clone()).or_default();
        let (in_flight, max_in_flight) = series.requests.unwrap_or_default();
        series.requests = Some((in_flight + usage.in_flight, max_in_flight + usage.max_in_flight));
        for endpoint in usage.endpoints {
            let series = self.endpoints.entry((service.clone(), endpoint.endpoint)).or_default();
            series.weight = series.weight.max(endpoint.weight);
            series.open += endpoint.open;
        }
    }

    fn omitted(&self) -> usize {
        self.backends.len().saturating_sub(MAX_BACKENDS) + self.endpoints.len().saturating_sub(MAX_ENDPOINTS)
    }

    fn backends(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        desc: Desc,
        metric: impl Fn(&BackendSeries) -> Option<Value>,
    ) -> Result<(), Error> {
        let series = self
            .backends
            .iter()
            .take(MAX_BACKENDS)
            .filter_map(|(service, values)| Some(([("service", service.as_str())], metric(values)?)));
        encode(encoder, desc, series)
    }

    fn endpoints(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        desc: Desc,
        metric: impl Fn(&EndpointSeries) -> Option<Value>,
    ) -> Result<(), Error> {
        let series = self.endpoints.iter().take(MAX_ENDPOINTS).filter_map(|((service, endpoint), values)| {
            Some(([("service", service.as_str()), ("endpoint", endpoint.as_str())], metric(values)?))
        });
        encode(encoder, desc, series)
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
    desc: Desc,
    series: impl Iterator<Item = ([(&'a str, &'a str); N], Value)>,
) -> Result<(), Error> {
    let mut series = series.peekable();
    if series.peek().is_none() {
        return Ok(());
    }
    let mut family = desc.encode(encoder)?;
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
            Desc::gauge("portico_proxy_backend_requests", &["service"], "Requests in flight to a backend"),
            |series| series.requests.map(|(in_flight, _)| gauge(in_flight)),
        )?;
        sums.backends(
            cx,
            Desc::gauge(
                "portico_proxy_backend_max_requests",
                &["service"],
                "Maximum number of concurrent requests to a backend",
            ),
            |series| series.requests.map(|(_, max_in_flight)| gauge(max_in_flight)),
        )?;
        sums.backends(
            cx,
            Desc::counter(
                "portico_proxy_backend_connection_waits_total",
                &["service"],
                "Requests that had to wait for a new connection to a backend",
            ),
            |series| Some(Value::Counter(series.waits)),
        )?;
        sums.backends(
            cx,
            Desc::counter(
                "portico_proxy_backend_refused_requests_total",
                &["service"],
                "Requests rejected because too many were in flight to a backend",
            ),
            |series| Some(Value::Counter(series.refused)),
        )?;
        sums.endpoints(
            cx,
            Desc::gauge(
                "portico_proxy_backend_connections",
                &["endpoint", "service"],
                "Open connections to an address of a backend, without upgraded ones",
            ),
            |series| Some(gauge(series.open)),
        )?;
        sums.endpoints(
            cx,
            Desc::gauge(
                "portico_proxy_backend_weight",
                &["endpoint", "service"],
                "Weight of an address of a backend whose policy has weights",
            ),
            |series| series.weight.map(|weight| Value::Gauge(i64::from(weight))),
        )?;
        let desc = Desc::gauge(
            "portico_proxy_backend_series_left_out",
            &[],
            "Backends and addresses beyond the maximum number that these metrics list",
        );
        let left_out = i64::try_from(sums.omitted()).unwrap_or(i64::MAX);
        ConstGauge::new(left_out).encode(desc.encode(cx)?)
    }
}
