//! A gauge of things that never change while the process runs: a row each, under two labels.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// The values of the two labels, and that of the gauge.
pub type Row = ([&'static str; 2], i64);

#[derive(Debug)]
pub(super) struct Constants {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) labels: [&'static str; 2],
    pub(super) rows: Vec<Row>,
}

impl Collector for Constants {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for (values, value) in &self.rows {
            let labels = [(self.labels[0], values[0]), (self.labels[1], values[1])];
            ConstGauge::new(*value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
