//! Metrics `apiserver_flowcontrol_*` of kube-apiserver, collected at each scrape. A process with two dispatchers exposes the
//! metrics of the second under another prefix.

use std::fmt::{Debug, Error, Formatter};
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::counts::{FlowHistogram, SchemaCounts};
use crate::dispatcher::Dispatcher;
use crate::dump::LevelDump;
use crate::inflight::{RequestKind, RequestPhase};
use crate::queue_set::{DispatchTimes, RejectReason};
use crate::seat_seconds::SeatSeconds;
use crate::utilization::UtilizationDump;

/// Labels of a level or schema.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Prefix of the names in the descriptions below.
const PREFIX: &str = "apiserver_flowcontrol";

/// Collector for the metrics of one dispatcher.
pub struct FlowMetrics {
    /// Dispatcher to read.
    pub dispatcher: Dispatcher,
    /// Prefix of all names: `apiserver_flowcontrol`, or another one for a second dispatcher.
    pub prefix: &'static str,
}

/// Name, type, labels and help text of a metric family; docs/reference/metrics.md lists them.
#[derive(Clone, Copy)]
struct Desc {
    name: &'static str,
    kind: MetricType,
    help: &'static str,
}

impl Desc {
    const fn counter(name: &'static str, _labels: &[&str], help: &'static str) -> Self {
        Self { name, kind: MetricType::Counter, help }
    }

    const fn gauge(name: &'static str, _labels: &[&str], help: &'static str) -> Self {
        Self { name, kind: MetricType::Gauge, help }
    }

    const fn histogram(name: &'static str, _labels: &[&str], help: &'static str) -> Self {
        Self { name, kind: MetricType::Histogram, help }
    }
}

impl Debug for FlowMetrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("FlowMetrics")
    }
}

impl Collector for FlowMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let now = Instant::now();
        let levels: Vec<LevelDump> = self.dispatcher.levels().iter().map(|level| level.dump(now)).collect();
        let mut page = MetricsWriter { encoder, levels: &levels, prefix: self.prefix };
        page.write_levels()?;
        page.write_dispatch_marks()?;
        page.write_schemas()?;
        page.write_requests()?;
        page.write_utilization()?;
        page.write_inflight(&self.dispatcher)?;
        let fair = ConstGauge::new(self.dispatcher.fair_fraction());
        let desc = Desc::gauge(
            "apiserver_flowcontrol_seat_fair_frac",
            &[],
            "[ALPHA] Fair fraction of server's concurrency to allocate to each priority \
             level that can use it",
        );
        let name = page.full_name(desc);
        fair.encode(page.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?)
    }
}

struct MetricsWriter<'e, 'l> {
    encoder: DescriptorEncoder<'e>,
    levels: &'l [LevelDump],
    prefix: &'static str,
}

impl MetricsWriter<'_, '_> {
    /// Returns the name of a family with the prefix of this dispatcher, without `_total`, which the library appends.
    fn full_name(&self, desc: Desc) -> String {
        desc.name.trim_end_matches("_total").replacen(PREFIX, self.prefix, 1)
    }

    fn write_levels(&mut self) -> Result<(), Error> {
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_nominal_limit_seats",
                &["priority_level"],
                "[BETA] Nominal number of execution seats configured for each priority level",
            ),
            |l| l.limits.nominal.into(),
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_lower_limit_seats",
                &["priority_level"],
                "[ALPHA] Configured lower bound on number of execution seats available to each \
                 priority level",
            ),
            |l| l.limits.min.into(),
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_upper_limit_seats",
                &["priority_level"],
                "[ALPHA] Configured upper bound on number of execution seats available to each \
                 priority level",
            ),
            |l| l.limits.max.into(),
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_current_limit_seats",
                &["priority_level"],
                "[ALPHA] current derived number of execution seats available to each priority \
                 level",
            ),
            |l| l.limits.current.into(),
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_demand_seats_high_watermark",
                &["priority_level"],
                "[ALPHA] High watermark, over last adjustment period, of demand_seats",
            ),
            |l| l.demand.high_watermark.into(),
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_demand_seats_average",
                &["priority_level"],
                "[ALPHA] Time-weighted average, over last adjustment period, of demand_seats",
            ),
            |l| l.demand.average,
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_demand_seats_stdev",
                &["priority_level"],
                "[ALPHA] Time-weighted standard deviation, over last adjustment period, of \
                 demand_seats",
            ),
            |l| l.demand.deviation,
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_demand_seats_smoothed",
                &["priority_level"],
                "[ALPHA] Smoothed seat demands",
            ),
            |l| l.demand.smoothed,
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_target_seats",
                &["priority_level"],
                "[ALPHA] Seat allocation targets",
            ),
            |l| l.target,
        )?;
        self.write_level_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_current_r",
                &["priority_level"],
                "[ALPHA] R(time of last change)",
            ),
            |l| l.virtual_time.as_f64(),
        )
    }

    /// Writes the virtual times of the last dispatch, for levels with a dispatch.
    fn write_dispatch_marks(&mut self) -> Result<(), Error> {
        let dispatch_times: Vec<(&str, DispatchTimes)> =
            self.levels.iter().filter_map(|l| Some((l.name.as_str(), l.last_dispatch?))).collect();
        type Figures = fn(&DispatchTimes) -> [SeatSeconds; 2];
        let figures: [(Desc, bool, Figures); 4] = [
            (
                Desc::gauge(
                    "apiserver_flowcontrol_dispatch_r",
                    &["priority_level"],
                    "[ALPHA] R(time of last dispatch)",
                ),
                false,
                |m| [m.virtual_time; 2],
            ),
            (
                Desc::gauge(
                    "apiserver_flowcontrol_latest_s",
                    &["priority_level"],
                    "[ALPHA] S(most recently dispatched request)",
                ),
                false,
                |m| [m.latest; 2],
            ),
            (
                Desc::gauge(
                    "apiserver_flowcontrol_next_s_bounds",
                    &["bound", "priority_level"],
                    "[ALPHA] min and max, over queues, of S(oldest waiting request in queue)",
                ),
                true,
                |m| m.bounds,
            ),
            (
                Desc::gauge(
                    "apiserver_flowcontrol_next_discounted_s_bounds",
                    &["bound", "priority_level"],
                    "[ALPHA] min and max, over queues, of S(oldest waiting request in queue) - \
                     estimated work in progress",
                ),
                true,
                |m| m.discounted_bounds,
            ),
        ];
        for (desc, bounds, of) in figures {
            let name = self.full_name(desc);
            let mut family = self.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?;
            for (level, marks) in &dispatch_times {
                let named = ["min", "max"].into_iter().zip(of(marks)).take(if bounds { 2 } else { 1 });
                for (bound, figure) in named {
                    let bound = bounds.then_some(("bound", bound));
                    let labels: Labels<'_> = bound.into_iter().chain([("priority_level", *level)]).collect();
                    ConstGauge::new(figure.as_f64()).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the ratios of levels over time; each nanosecond counts as an observation.
    fn write_utilization(&mut self) -> Result<(), Error> {
        self.write_ratios(
            Desc::histogram(
                "apiserver_flowcontrol_priority_level_request_utilization",
                &["phase", "priority_level"],
                "[ALPHA] Observations, at the end of every nanosecond, of number of requests \
                 (as a fraction of the relevant limit) waiting or in any stage of execution \
                 (but only initial stage for WATCHes)",
            ),
            |used| {
                vec![
                    (Some(("phase", "waiting")), &used.waiting),
                    (Some(("phase", "executing")), &used.executing),
                ]
            },
        )?;
        self.write_ratios(
            Desc::histogram(
                "apiserver_flowcontrol_priority_level_seat_utilization",
                &["phase", "priority_level"],
                "[ALPHA] Observations, at the end of every nanosecond, of utilization of seats \
                 for any stage of execution (but only initial stage for WATCHes)",
            ),
            |used| vec![(Some(("phase", "executing")), &used.seats)],
        )?;
        self.write_ratios(
            Desc::histogram(
                "apiserver_flowcontrol_demand_seats",
                &["priority_level"],
                "[ALPHA] Observations, at the end of every nanosecond, of (the number of seats \
                 each priority level could use) / (nominal number of seats for that level)",
            ),
            |used| vec![(None, &used.demand)],
        )
    }

    fn write_inflight(&mut self, flow: &Dispatcher) -> Result<(), Error> {
        let desc = Desc::histogram(
            "apiserver_flowcontrol_read_vs_write_current_requests",
            &["phase", "request_kind"],
            "[ALPHA] Observations, at the end of every nanosecond, of the number of \
             requests (as a fraction of the relevant limit) waiting or in regular stage of \
             execution",
        );
        let name = self.full_name(desc);
        let mut family = self.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?;
        for (phase, phase_name) in
            [(RequestPhase::Waiting, "waiting"), (RequestPhase::Executing, "executing")]
        {
            for (kind, kind_name) in
                [(RequestKind::ReadOnly, "readOnly"), (RequestKind::Mutating, "mutating")]
            {
                let labels = [("phase", phase_name), ("request_kind", kind_name)];
                EncodedHistogram(&flow.ratio(phase, kind)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn write_ratios(
        &mut self,
        desc: Desc,
        figures: impl Fn(&UtilizationDump) -> Vec<(ExtraLabel, &FlowHistogram)>,
    ) -> Result<(), Error> {
        let name = self.full_name(desc);
        let mut family = self.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?;
        for level in self.levels {
            for (label, histogram) in figures(&level.utilization) {
                let labels: Labels<'_> =
                    label.into_iter().chain([("priority_level", level.name.as_str())]).collect();
                EncodedHistogram(histogram).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn write_schemas(&mut self) -> Result<(), Error> {
        self.write_schema_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_current_inqueue_requests",
                &["flow_schema", "priority_level"],
                "[BETA] Number of requests currently pending in queues of the API Priority and \
                 Fairness subsystem",
            ),
            |c| c.waiting,
        )?;
        self.write_schema_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_current_inqueue_seats",
                &["flow_schema", "priority_level"],
                "[ALPHA] Number of seats currently pending in queues of the API Priority and \
                 Fairness subsystem",
            ),
            |c| c.waiting_seats,
        )?;
        self.write_schema_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_current_executing_requests",
                &["flow_schema", "priority_level"],
                "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) \
                 execution stage in the API Priority and Fairness subsystem",
            ),
            |c| c.executing,
        )?;
        self.write_schema_gauge(
            Desc::gauge(
                "apiserver_flowcontrol_current_executing_seats",
                &["flow_schema", "priority_level"],
                "[BETA] Concurrency (number of seats) occupied by the currently executing \
                 (initial stage for a WATCH, any stage otherwise) requests in the API Priority \
                 and Fairness subsystem",
            ),
            |c| c.executing_seats,
        )
    }

    fn write_requests(&mut self) -> Result<(), Error> {
        self.write_counters(
            Desc::counter(
                "apiserver_flowcontrol_dispatched_requests_total",
                &["flow_schema", "priority_level"],
                "[BETA] Number of requests executed by API Priority and Fairness subsystem",
            ),
            |counts| vec![(None, counts.dispatched)].into_iter().filter(|(_, count)| *count > 0).collect(),
        )?;
        self.write_counters(
            Desc::counter(
                "apiserver_flowcontrol_rejected_requests_total",
                &["flow_schema", "priority_level", "reason"],
                "[BETA] Number of requests rejected by API Priority and Fairness subsystem",
            ),
            |counts| {
                let reasons = RejectReason::ALL.into_iter().zip(counts.rejected);
                let some = reasons.filter(|(_, count)| *count > 0);
                some.map(|(reason, count)| (Some(("reason", reason.as_str())), count)).collect()
            },
        )?;
        self.write_counters(
            Desc::counter(
                "apiserver_flowcontrol_request_dispatch_no_accommodation_total",
                &["flow_schema", "priority_level"],
                "[ALPHA] Number of times a dispatch attempt resulted in a non accommodation \
                 due to lack of available seats",
            ),
            |counts| {
                vec![(None, counts.no_accommodation)].into_iter().filter(|(_, count)| *count > 0).collect()
            },
        )?;
        self.write_histograms(
            Desc::histogram(
                "apiserver_flowcontrol_request_wait_duration_seconds",
                &["execute", "flow_schema", "priority_level"],
                "[BETA] Length of time a request spent waiting in its queue",
            ),
            |counts| {
                vec![
                    (Some(("execute", "true")), &counts.wait_served),
                    (Some(("execute", "false")), &counts.wait_rejected),
                ]
            },
        )?;
        self.write_histograms(
            Desc::histogram(
                "apiserver_flowcontrol_request_execution_seconds",
                &["flow_schema", "priority_level", "type"],
                "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) \
                 stage of request execution in the API Priority and Fairness subsystem",
            ),
            |counts| {
                vec![
                    (Some(("type", "regular")), &counts.execution),
                    (Some(("type", "watch")), &counts.watch_execution),
                ]
            },
        )?;
        self.write_histograms(
            Desc::histogram(
                "apiserver_flowcontrol_request_queue_length_after_enqueue",
                &["flow_schema", "priority_level"],
                "[ALPHA] Length of queue in the API Priority and Fairness subsystem, as seen \
                 by each request after it is enqueued",
            ),
            |c| vec![(None, &c.queue_length)],
        )?;
        self.write_histograms(
            Desc::histogram(
                "apiserver_flowcontrol_work_estimated_seats",
                &["flow_schema", "priority_level"],
                "[ALPHA] Number of estimated seats (maximum of initial and final seats) \
                 associated with requests in API Priority and Fairness",
            ),
            |c| vec![(None, &c.seats)],
        )?;
        self.write_histograms(
            Desc::histogram(
                "apiserver_flowcontrol_watch_count_samples",
                &["flow_schema", "priority_level"],
                "[ALPHA] count of watchers for mutating requests in API Priority and Fairness",
            ),
            |c| vec![(None, &c.watches)],
        )
    }

    fn write_level_gauge(&mut self, desc: Desc, figure: fn(&LevelDump) -> f64) -> Result<(), Error> {
        let name = self.full_name(desc);
        let mut family = self.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?;
        for level in self.levels {
            let labels = [("priority_level", level.name.as_str())];
            ConstGauge::new(figure(level)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn write_schema_gauge(&mut self, desc: Desc, figure: fn(&SchemaCounts) -> u32) -> Result<(), Error> {
        let name = self.full_name(desc);
        let mut family = self.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?;
        for (level, counts) in counts_by_level(self.levels) {
            let labels = labels(level, counts, None);
            ConstGauge::new(i64::from(figure(counts))).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn write_counters(
        &mut self,
        desc: Desc,
        figures: impl Fn(&SchemaCounts) -> Vec<(ExtraLabel, u64)>,
    ) -> Result<(), Error> {
        let name = self.full_name(desc);
        let mut family = self.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?;
        for (level, counts) in counts_by_level(self.levels) {
            for (label, figure) in figures(counts) {
                let labels = labels(level, counts, label);
                ConstCounter::new(figure).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn write_histograms(
        &mut self,
        desc: Desc,
        figures: impl Fn(&SchemaCounts) -> Vec<(ExtraLabel, &FlowHistogram)>,
    ) -> Result<(), Error> {
        let name = self.full_name(desc);
        let mut family = self.encoder.encode_descriptor(&name, desc.help, None, desc.kind)?;
        for (level, counts) in counts_by_level(self.levels) {
            for (label, histogram) in figures(counts).into_iter().filter(|(_, h)| !h.is_empty()) {
                let labels = labels(level, counts, label);
                EncodedHistogram(histogram).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Additional label.
type ExtraLabel = Option<(&'static str, &'static str)>;

fn counts_by_level(levels: &[LevelDump]) -> impl Iterator<Item = (&str, &SchemaCounts)> {
    levels.iter().flat_map(|level| level.counts.iter().map(|counts| (level.name.as_str(), counts)))
}

fn labels<'a>(level: &'a str, counts: &'a SchemaCounts, more: ExtraLabel) -> Labels<'a> {
    let base = [("priority_level", level), ("flow_schema", counts.schema.as_str())];
    base.into_iter().chain(more).collect()
}

/// Wrapper that encodes a histogram for the library.
struct EncodedHistogram<'a>(&'a FlowHistogram);

impl EncodeMetric for EncodedHistogram<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        let bounds = self.0.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(self.0.counts.iter().copied()).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.0.sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
