//! Gauge with constant values: one row for each series, with two labels.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

use super::desc::Desc;

/// Values of the two labels, and of the gauge.
pub type Row = ([&'static str; 2], i64);

#[derive(Debug)]
pub(super) struct Constants {
    pub(super) desc: Desc,
    pub(super) rows: Vec<Row>,
}

impl Collector for Constants {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut family = self.desc.encode(&mut encoder)?;
        for (values, value) in &self.rows {
            let labels: Vec<_> = self.desc.labels.iter().copied().zip(*values).collect();
            ConstGauge::new(*value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
