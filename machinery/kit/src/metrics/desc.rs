//! Descriptions of metric families: docs/reference/metrics.md lists each `Desc` in the sources.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// Name, type, labels and help text of a metric family.
#[derive(Clone, Copy, Debug)]
pub struct Desc {
    /// Full name as exposed, with or without `_total`.
    pub name: &'static str,
    /// Type of the family.
    pub kind: MetricType,
    /// Names of the labels, sorted.
    pub labels: &'static [&'static str],
    /// Help text; for metrics of kube-apiserver it begins with the stability level in brackets.
    pub help: &'static str,
}

impl Desc {
    /// Describes a counter.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricType::Counter, labels, help }
    }

    /// Describes a gauge.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricType::Gauge, labels, help }
    }

    /// Describes a histogram.
    pub const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricType::Histogram, labels, help }
    }

    /// Describes a summary, for which `prometheus_client` has no type.
    pub const fn summary(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricType::Unknown, labels, help }
    }

    /// Starts the family in the output of a collector.
    ///
    /// # Errors
    ///
    /// If the output cannot be written to.
    pub fn encode<'e>(&self, encoder: &'e mut DescriptorEncoder<'_>) -> Result<MetricEncoder<'e>, Error> {
        encoder.encode_descriptor(self.base(), self.help, None, self.kind)
    }

    /// Name as `prometheus_client` takes it: it appends `_total` to the names of counters.
    pub(super) fn base(&self) -> &'static str {
        match self.kind {
            MetricType::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            _ => self.name,
        }
    }
}
